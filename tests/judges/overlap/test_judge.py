from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from ragspan.exceptions import JudgeError
from ragspan.judges import OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.records import RagRecord

COPIED = "The Eiffel Tower opened in March 1889."
INVENTED = "It was painted pink by Pablo Picasso in 1968."


class TunedJudge(OverlapJudge):
    """A user's own."""

    def __init__(self, share):
        super().__init__()
        object.__setattr__(self, "share", share)


def test_a_derived_judge_travels_with_what_it_has(judge):
    copy = pickle.loads(pickle.dumps(TunedJudge(0.25)))

    assert type(copy) is TunedJudge
    assert (copy.share, copy.name) == (0.25, "overlap")
    assert pickle.loads(pickle.dumps(judge)) == judge


async def test_a_copied_answer_is_grounded_and_an_invented_one_is_not(judge, record_of):
    (copied,) = await judge.vote_adherence(record_of(COPIED), 1)
    (invented,) = await judge.vote_adherence(record_of(INVENTED), 1)

    assert copied.grounded
    assert copied.probability > 0.9
    assert not invented.grounded
    assert invented.probability < 0.1


async def test_the_explanation_names_the_weakest_sentence_and_what_the_passages_lack(judge, record_of):
    (vote,) = await judge.vote_adherence(record_of(f"{COPIED} {INVENTED}"), 1)

    assert INVENTED in vote.explanation
    assert COPIED not in vote.explanation
    assert "numbers not in the context: 1968" in vote.explanation
    assert "names not in the context: Pablo, Picasso" in vote.explanation


async def test_an_unsupported_sentence_lowers_the_score_and_a_supported_one_less(adherence):
    alone = await adherence(COPIED)
    with_supported = await adherence(f"{COPIED} It is 330 metres tall.")
    with_invented = await adherence(f"{COPIED} {INVENTED}")

    assert with_invented < with_supported <= alone


async def test_courtesies_change_no_score(adherence):
    assert await adherence(f"Sure, I'd be happy to help! {COPIED} I hope this helps!") == await adherence(COPIED)


@pytest.mark.parametrize("reply", ["Yes.", "No.", "Yes, it is."])
async def test_a_bare_yes_or_no_cannot_be_told(judge, record_of, reply):
    for question in (judge.vote_adherence, judge.rate_completeness):
        with pytest.raises(JudgeError) as raised:
            await question(record_of(reply), 1)

        assert raised.value.error_type == "cannot_tell"


async def test_a_refusal_is_a_claim(judge, record_of):
    record = record_of("The passages do not mention the price.")

    assert await judge.extract_claims(record) == ["The passages do not mention the price."]
    assert len(await judge.verify_claims(record, await judge.extract_claims(record))) == 1


async def test_each_claim_gets_a_verdict_with_its_reasons(judge, record_of):
    record = record_of(f"Sure!\n1. {COPIED}\n2. {INVENTED}")

    claims = await judge.extract_claims(record)
    supported, unsupported = await judge.verify_claims(record, claims)

    assert claims == [COPIED, INVENTED]
    assert (supported.index, supported.claim, supported.supported) == (0, COPIED, True)
    assert (unsupported.index, unsupported.claim, unsupported.supported) == (1, INVENTED, False)
    assert supported.probability > 0.5 > unsupported.probability
    assert "numbers not in the context: 1968" in unsupported.explanation


async def test_claims_that_another_judge_extracted_are_verified_too(judge, record_of):
    record = record_of(COPIED)

    verdicts = await judge.verify_claims(
        record, ["The Louvre opened in 1793.", "The Louvre is closed on Tuesdays.", ""]
    )

    assert [verdict.supported for verdict in verdicts] == [True, False, False]


async def test_an_answer_that_covers_more_is_more_complete(judge, record_of):
    full = f"{COPIED} The Eiffel Tower was built by the company of Gustave Eiffel."

    (short_rating,) = await judge.rate_completeness(record_of(COPIED), 1)
    (full_rating,) = await judge.rate_completeness(record_of(full), 1)

    assert short_rating.value < full_rating.value <= 1
    assert "company" in short_rating.explanation
    assert "company" not in full_rating.explanation


@pytest.mark.parametrize(
    "declining",
    ["The passages do not mention when it opened.", "I don't know."],
)
@pytest.mark.parametrize("question", ["vote_adherence", "rate_completeness"])
async def test_words_do_not_tell_whether_a_refusal_is_right(judge, record_of, declining, question):
    with pytest.raises(JudgeError) as raised:
        await getattr(judge, question)(record_of(declining), 1)

    assert raised.value.error_type == "cannot_tell"


@pytest.mark.parametrize(
    "declining",
    [
        "The passages do not mention it.",
        "I don't know.",
        "Sorry, I couldn't find anything about that.",
        "I'm not sure.",
        "No information available.",
        "Das wei\u00df ich nicht.",
        "\u308f\u304b\u308a\u307e\u305b\u3093\u3002",
    ],
)
async def test_a_refusal_has_no_score_of_any_metric_where_the_contexts_are_about_something_else(
    judge, record_of, declining
):
    record = record_of(declining, question="Which vaccine protects against measles?")
    metrics = [ContextAdherence(judge), Completeness(judge), ContextUtilization(judge), Faithfulness(judge)]

    outcomes = [await metric.score(record) for metric in metrics]

    assert [outcome.reason for outcome in outcomes] == ["refusal"] * 4
    (vote,) = await judge.vote_adherence(record, 1)
    assert vote.grounded
    assert "the contexts have hardly a word of the question" in vote.explanation


async def test_a_claim_that_declines_beside_others_is_unsure(judge, record_of):
    record = record_of(f"{COPIED} The passages do not mention the price.")

    verdicts = await judge.verify_claims(record, await judge.extract_claims(record))

    assert [verdict.verdict for verdict in verdicts] == ["supported"] * (len(verdicts) - 1) + ["unsure"]


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("With 8 tablets of 500 mg that is 4,000 mg a day.", "unsure"),
        ("With 8 tablets of 500 mg that is 6,150 mg a day.", "unsupported"),
        ("A tablet has 500 mg.", "supported"),
    ],
)
async def test_a_number_that_follows_from_others_is_unsure(judge, claim, verdict):
    record = RagRecord(
        question="How much a day?",
        contexts=["Adults take at most 8 tablets a day. A tablet has 500 mg."],
        response=claim,
    )

    assert [one.verdict for one in await judge.verify_claims(record, [claim])] == [verdict]


async def test_the_passage_that_was_used_is_useful(judge, record_of):
    first, second = await judge.judge_usefulness(record_of(COPIED))

    assert (first.index, first.useful) == (0, True)
    assert (second.index, second.useful) == (1, False)


async def test_of_a_passage_that_was_used_the_sentences_that_the_answer_conveys_count(judge, record_of):
    first, second = await judge.measure_utilization(record_of(COPIED))

    assert 0 < first.value < 1
    assert second.value == 0


async def test_nothing_of_a_passage_is_used_by_an_answer_from_nowhere(judge, record_of):
    ratings = await judge.measure_utilization(record_of(INVENTED))

    assert [rating.value for rating in ratings] == [0, 0]


async def test_a_passage_that_holds_the_words_of_the_question_is_relevant(judge, record_of):
    first, second = await judge.rate_context_relevance(record_of(None))

    assert (first.index, first.value) == (0, 1.0)
    assert second.value < 0.5


async def test_values_in_json_are_contradicted_in_the_answer(judge, record_of):
    record = record_of("Blue Door has outdoor seating.", contexts=['{"name": "Blue Door", "OutdoorSeating": false}'])

    (vote,) = await judge.vote_adherence(record, 1)

    assert not vote.grounded
    assert "the context says otherwise about: outdoor seating" in vote.explanation


def test_the_stemmer_is_loaded_with_the_first_judgement_and_not_before():
    code = "import sys, ragspan.judges.overlap, ragspan.text.responses; sys.exit('snowballstemmer' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
