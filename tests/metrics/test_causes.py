"""Why an answer fails: every judgement here is the embedded judge's own."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from ragspan.exceptions import BudgetExhausted
from ragspan.judges import OverlapJudge
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.metrics.causes import unseen_documents
from ragspan.outcomes import Cause
from ragspan.records import RagRecord, Reranking, Retrieval, RetrievedContext

SETTLED = RetrievedContext(text="Beta settles card payments after midnight.", id="settled")
FEES = RetrievedContext(text="The annual fee of the silver card is 49 euros, payable in March.", id="fees")
WEATHER = RetrievedContext(text="In Lisbon it rained on eleven days of last October.", id="weather")
INVENTED = "Gamma sends invoices by registered mail every Tuesday."


def search(*found, name="VectorStoreRetriever"):
    return Retrieval(name=name, query="cards", started_ns=1, ended_ns=2, contexts=found)


def reranker(given, left, name="CohereRerank", started_ns=2):
    return Reranking(name=name, query="cards", started_ns=started_ns, ended_ns=3, given=given, contexts=left)


@pytest.fixture
def dropped():
    """A record whose reranker kept one of three documents, and whose answer rests on another one."""
    found = (WEATHER, SETTLED, FEES)
    return RagRecord(
        question="What does the silver card cost?",
        contexts=(SETTLED,),
        response=FEES.text,
        retrievals=(search(*found),),
        rerankings=(reranker(found, (SETTLED,)),),
    )


@pytest.mark.parametrize("metric", [Faithfulness, ContextAdherence])
async def test_a_document_that_a_reranker_dropped_is_named_with_the_reranker(metric, dropped):
    score = await metric(OverlapJudge()).score(dropped)

    assert score.causes == (
        Cause(
            kind="lost_before_prompt",
            claim=FEES.text,
            document=3,
            search="VectorStoreRetriever",
            step="CohereRerank",
        ),
    )
    assert score.cause == "lost_before_prompt"
    assert score.losing_step == "CohereRerank"
    assert score.explanation.startswith(
        "Document 3 of VectorStoreRetriever, which CohereRerank dropped, supports a claim that the contexts do not. "
    )


async def test_of_several_rerankers_the_one_is_named_that_dropped_the_document(dropped):
    first = reranker((WEATHER, SETTLED, FEES), (SETTLED, FEES), name="Coarse", started_ns=2)
    second = reranker((SETTLED, FEES), (SETTLED,), name="Fine", started_ns=3)

    score = await Faithfulness(OverlapJudge()).score(replace(dropped, rerankings=(second, first)))

    assert [cause.step for cause in score.causes] == ["Fine"]


async def test_without_a_step_that_explains_it_the_document_did_not_reach_the_prompt(dropped):
    score = await Faithfulness(OverlapJudge()).score(replace(dropped, rerankings=()))

    assert score.losing_step is None
    assert score.explanation.startswith("Document 3 of VectorStoreRetriever, which did not reach the prompt, supports")


async def test_a_document_that_only_the_reranker_is_known_to_have_had_is_one_of_its_own(dropped):
    """As with a retriever that asks another one and orders anew what it found."""
    score = await Faithfulness(OverlapJudge()).score(replace(dropped, retrievals=(search(SETTLED),)))

    assert score.explanation.startswith("Document 3, which CohereRerank dropped, supports")


async def test_what_stands_in_the_part_that_was_cut_off_is_cut():
    whole = RetrievedContext(text=f"{SETTLED.text} {FEES.text}", id="terms")
    shown = replace(whole, text=SETTLED.text, truncated=True)
    record = RagRecord(question="?", contexts=(shown,), response=FEES.text, retrievals=(search(WEATHER, whole),))

    score = await Faithfulness(OverlapJudge()).score(record)

    assert score.cause == "cut"
    assert score.explanation.startswith("The part of document 2 of VectorStoreRetriever that was cut off supports")


async def test_what_nothing_supports_is_unsupported(dropped):
    score = await Faithfulness(OverlapJudge()).score(replace(dropped, response=INVENTED))

    assert score.causes == (Cause(kind="unsupported", claim=INVENTED),)
    assert score.losses is None


async def test_of_equally_many_causes_the_one_counts_that_can_be_mended(dropped):
    record = replace(dropped, response=f"{INVENTED} {FEES.text}")

    score = await Faithfulness(OverlapJudge()).score(record)

    assert sorted(cause.kind for cause in score.causes) == ["lost_before_prompt", "unsupported"]
    assert score.cause == "lost_before_prompt"


async def test_where_everything_reached_the_prompt_no_judge_is_asked(fixed_judge):
    record = RagRecord(question="?", contexts=(SETTLED,), response=INVENTED, retrievals=(search(SETTLED),))
    judge = fixed_judge(votes=[False] * 3)

    score = await ContextAdherence(judge).score(record)

    assert score.causes == (Cause(kind="unsupported"),)
    assert judge.asked == [("votes", 3)]


@pytest.mark.parametrize(
    "changes",
    [
        {"retrievals": (), "rerankings": ()},  # nobody knows what was retrieved
        {"response": SETTLED.text},  # it passes
    ],
)
async def test_there_is_no_cause_where_the_searches_are_unknown_or_the_answer_passes(dropped, changes):
    score = await Faithfulness(OverlapJudge()).score(replace(dropped, **changes))

    assert score.causes == ()
    assert score.cause is None


async def test_causes_can_be_switched_off(dropped):
    score = await Faithfulness(OverlapJudge(), causes=False).score(dropped)

    assert score.causes == ()


@pytest.mark.parametrize("error", [BudgetExhausted("requests_per_minute"), None])
async def test_a_judge_that_cannot_tell_costs_no_score(fixed_judge, dropped, error):
    judge = fixed_judge(claims=[FEES.text], supported=[False])
    if error is not None:

        async def find_support(record, claims, documents):
            raise error

        judge.find_support = find_support

    score = await Faithfulness(judge).score(dropped)

    assert score.label == "fail"
    assert score.causes == ()


async def test_a_judge_that_does_not_answer_in_time_costs_no_score(fixed_judge, dropped, monkeypatch):
    async def never(record, claims, documents):
        await asyncio.Event().wait()

    monkeypatch.setattr("ragspan.metrics.causes._LONGEST_WAIT", 0.01)
    judge = fixed_judge(claims=[FEES.text], supported=[False])
    judge.find_support = never

    score = await Faithfulness(judge).score(dropped)

    assert score.label == "fail"
    assert score.causes == ()


async def test_what_the_judge_cannot_read_to_its_end_does_not_make_a_claim_unsupported(dropped):
    endless = RetrievedContext(text="It rained on many days. " * 4000)
    record = replace(dropped, response=INVENTED, retrievals=(search(endless),), rerankings=())

    score = await Faithfulness(OverlapJudge()).score(record)

    assert score.label == "fail"
    assert score.causes == ()


class TestWhatTheModelDidNotSee:
    def of(self, contexts, *found):
        return [
            document.text
            for document in unseen_documents(
                RagRecord(question="?", contexts=contexts, response="!", retrievals=(search(*found),))
            )
        ]

    def test_a_document_inside_a_larger_context_was_seen(self):
        assert self.of((RetrievedContext(text=f"page: 3\n\n{FEES.text} And more."),), FEES) == []

    def test_a_document_that_two_searches_found_counts_once(self):
        assert self.of((SETTLED,), FEES, FEES, SETTLED) == [FEES.text]

    def test_a_document_that_a_step_wrote_anew_was_seen(self):
        assert (
            self.of(
                (replace(FEES, text="A summary that is quite a bit longer than the document of which it is one."),),
                FEES,
            )
            == []
        )

    def test_a_document_that_a_step_shortened_was_seen_in_part(self):
        record = RagRecord(
            question="?", contexts=(replace(FEES, text="49 euros"),), response="!", retrievals=(search(FEES),)
        )

        assert [document.is_cut for document in unseen_documents(record)] == [True]

    def test_a_document_that_happens_to_hold_the_few_words_of_a_context_was_not_cut(self):
        record = RagRecord(
            question="?",
            contexts=[RetrievedContext(text="49 euros")],
            response="!",
            retrievals=(search(replace(FEES, id=None)),),
        )

        assert [document.is_cut for document in unseen_documents(record)] == [False]
