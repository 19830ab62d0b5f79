"""Why an answer fails: every judgement here is the embedded judge's own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragspan.judges import OverlapJudge
from ragspan.messages import Message
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.metrics.causes import unseen_documents
from ragspan.outcomes import Cause
from ragspan.records import Background, Generation, RagRecord, Reranking, Retrieval, RetrievedContext

SETTLED = RetrievedContext(text="Beta settles card payments after midnight.", id="settled")
FEES = RetrievedContext(text="The annual fee of the silver card is 49 euros, payable in March.", id="fees")
WEATHER = RetrievedContext(text="In Lisbon it rained on eleven days of last October.", id="weather")
INVENTED = "Every Tuesday invoices are sent by Gamma."


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


async def test_what_stands_in_the_part_that_was_cut_off_is_cut():
    whole = RetrievedContext(text=f"{SETTLED.text} {FEES.text}", id="terms")
    shown = replace(whole, text=SETTLED.text, truncated=True)
    record = RagRecord(question="?", contexts=(shown,), response=FEES.text, retrievals=(search(WEATHER, whole),))

    score = await Faithfulness(OverlapJudge()).score(record)

    assert score.cause == "cut"
    assert score.explanation.startswith("The part of document 2 of VectorStoreRetriever that was cut off supports")


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

    assert (score.causes, score.cause) == ((), None)


@pytest.mark.parametrize(
    ("response", "unseen", "causes"),
    [
        (INVENTED, 100, (Cause(kind="unsupported", claim=INVENTED),)),
        (INVENTED, 101, ()),  # of which the last is not looked at
        ("Die Karte kostet im Jahr 49 Euro, und sie ist im März zu zahlen.", 2, ()),  # in another language
    ],
)
async def test_what_no_document_supports_is_unsupported_where_it_can_be_told(fixed_judge, response, unseen, causes):
    pages = [RetrievedContext(text=f"Page {at} tells of the rain that was in Lisbon.") for at in range(unseen)]
    record = RagRecord(question="?", contexts=(SETTLED,), response=response, retrievals=(search(SETTLED, *pages),))
    score = await ContextAdherence(fixed_judge(votes=[False] * 3)).score(record)

    assert score.causes == causes


PAGE = RetrievedContext(text=f"page: 3\n\n{FEES.text} And more.")
SUMMARY = replace(FEES, text="A summary that is quite a bit longer than the document of which it is one.")
WITHOUT_ID = replace(FEES, id=None)


@pytest.mark.parametrize(
    ("context", "found", "unseen"),
    [
        (PAGE, [FEES], []),  # it is inside of the context
        (SETTLED, [FEES, FEES, SETTLED], [(FEES.text, False)]),  # two searches found it
        (SUMMARY, [FEES], []),  # a step wrote it anew
        (replace(FEES, text="49 euros"), [FEES], [(FEES.text, True)]),  # a step shortened it
        (RetrievedContext(text=FEES.text[4:24]), [FEES], [(FEES.text, True)]),  # without an id, by its words
        (
            RetrievedContext(text=FEES.text[4:23]),
            [WITHOUT_ID],
            [(FEES.text, False)],
        ),  # it happens to have the same words
    ],
)
def test_what_the_model_did_not_see_or_saw_in_part(context, found, unseen):
    record = RagRecord(question="?", contexts=(context,), response="!", retrievals=(search(*found),))

    assert [(text, lost.kind == "cut") for text, lost in unseen_documents(record)] == unseen


# What models read, and what they may not read


def call(*texts):
    prompt = tuple(Message(role="user", text=text) for text in texts)
    return Generation(model="m", provider=None, started_ns=1, ended_ns=2, prompt=prompt)


@pytest.mark.parametrize(
    "held",
    [
        {"generations": (call(f"Summarise:\n{FEES.text.upper()}"),)},
        {"background": (Background(text=f"earlier: {FEES.text}", kind="history"),)},
    ],
)
def test_a_document_whose_words_stand_in_a_prompt_is_never_lost(dropped, held):
    unseen = unseen_documents(replace(dropped, **held))

    lost = [text for text, cause in unseen if cause.kind == "lost_before_prompt"]
    assert FEES.text not in lost
    assert WEATHER.text in lost


def test_of_a_document_that_a_prompt_holds_in_part_the_rest_was_cut_off(dropped):
    whole = RetrievedContext(text=f"{FEES.text} {WEATHER.text}")
    prompt = call(f"Summarise: {FEES.text}")
    record = replace(dropped, retrievals=(search(SETTLED, whole),), rerankings=(), generations=(prompt,))

    assert [cause.kind for _, cause in unseen_documents(record)] == ["cut"]


@pytest.mark.parametrize("prompt", ["Query: {}\nAnswer:", "Beta settles card payments after midnight.\n\n{}"])
def test_a_document_of_which_the_question_alone_has_words_is_lost_and_not_cut_off(dropped, prompt):
    question = "Is the annual fee of the silver card payable in May?"
    record = replace(dropped, question=question, generations=(call(prompt.format(question)),))

    assert [cause.kind for text, cause in unseen_documents(record) if text == FEES.text] == ["lost_before_prompt"]
