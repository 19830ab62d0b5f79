"""A span classifier, behind a real server that answers as LettuceDetect's does."""

from __future__ import annotations

import json
import pickle

import pytest

from ragspan.exceptions import JudgeError
from ragspan.judges import OverlapJudge, ReferencePair, SpanDetector
from ragspan.metrics import ContextAdherence, FaithfulnessWithHHEM
from ragspan.outcomes import MetricFailure, NotApplicable
from ragspan.records import RagRecord

CLAIMS = ["The Nile ends in Egypt.", "It is 900 km long.", "Bread is baked."]


@pytest.fixture
def record():
    return RagRecord(question="Where?", contexts=["The Nile, 6650 km long, ends in Egypt."], response=" ".join(CLAIMS))


@pytest.fixture
def server(fake_openai):
    """Marks the given words, each with its score, wherever the text has them."""

    def marks(**words):
        def answer(request):
            text = request["answer"]
            spans = [
                {
                    "start": text.find(word),
                    "end": text.find(word) + len(word),
                    "text": word,
                    "hallucination_score": score,
                }
                for word, score in words.items()
                if word in text
            ]
            return 200, {"predictions": spans}

        fake_openai.answer = answer
        return SpanDetector(fake_openai.base_url.removesuffix("/v1"), max_retries=0)

    return marks


async def test_a_claim_with_a_marked_part_is_unsupported_and_the_part_is_quoted(server, record, fake_openai):
    detector = server(**{"900 km": 0.94})

    verdicts = await detector.verify_claims(record, CLAIMS)

    assert [(verdict.supported, verdict.probability) for verdict in verdicts] == [
        (True, None),
        (False, pytest.approx(0.06)),
        (True, None),
    ]
    assert verdicts[1].explanation == '"900 km" is marked as unsupported with a probability of 0.94'
    assert fake_openai.paths == ["/v1/lettucedetect/spans"]
    [request] = fake_openai.requests
    assert request == {
        "contexts": ["The Nile, 6650 km long, ends in Egypt."],
        "question": "Where?",
        "answer": " ".join(CLAIMS),
    }


async def test_a_span_over_two_claims_is_quoted_in_both_by_its_part(server, record):
    first, second, third = await server(**{"Egypt. It is 900": 0.8}).verify_claims(record, CLAIMS)

    assert [first.supported, second.supported, third.supported] == [False, False, True]
    assert first.explanation.startswith('"Egypt." is marked')
    assert second.explanation.startswith('"It is 900" is marked')


async def test_a_blank_between_two_claims_belongs_to_neither(server, record):
    """LettuceDetect's spans begin with the blank before their first word."""
    verdicts = await server(**{" It is 900 km long.": 0.99}).verify_claims(record, CLAIMS)

    assert [verdict.supported for verdict in verdicts] == [True, False, True]
    assert verdicts[1].explanation.startswith('"It is 900 km long." ')


async def test_faithfulness_takes_it_as_its_verifier(server, record):
    metric = FaithfulnessWithHHEM(OverlapJudge(), server(Bread=0.7), name="faithfulness_lettucedetect")

    score = await metric.score(record)

    assert (score.value, score.label, score.judge) == (pytest.approx(2 / 3), "fail", "lettucedetect")
    assert metric.name == "faithfulness_lettucedetect"


async def test_adherence_asks_about_the_whole_response(server, record):
    failing = await ContextAdherence(server(Bread=0.7)).score(record)
    passing = await ContextAdherence(server()).score(record)

    assert (failing.value, failing.label) == (pytest.approx(0.3), "fail")
    assert (passing.value, passing.label) == (1.0, "pass")


async def test_without_contexts_nobody_is_asked(server, fake_openai):
    empty = RagRecord(question="q", contexts=[" "], response="r")

    assert await server().verify_claims(empty, ["r"]) == []
    assert fake_openai.requests == []


async def test_a_response_in_a_language_that_it_was_not_trained_for_is_not_applicable(server, fake_openai):
    german = RagRecord(
        question="Wie lange ist der Nil?",
        contexts=["Der Nil ist 6650 Kilometer lang und endet in Ägypten."],
        response="Der Nil ist mehr als 6000 Kilometer lang und endet in Ägypten.",
    )

    outcome = await ContextAdherence(server()).score(german)

    assert outcome == NotApplicable(reason="language", detail="lettucedetect knows en, and not German")
    assert fake_openai.requests == []


async def test_languages_none_is_any(fake_openai):
    fake_openai.answer = lambda _request: (200, {"predictions": []})
    detector = SpanDetector(fake_openai.base_url, languages=None)
    german = RagRecord(question="", contexts=["Der Nil ist sehr lang."], response="Der Nil ist sehr lang.")

    assert (await ContextAdherence(detector).score(german)).value == 1.0


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"predictions": None},
        {"predictions": [{"start": 0}]},
        {"predictions": [{"start": 0, "end": 3, "hallucination_score": 1.7}]},
        [],
        b"<html>busy</html>",
    ],
)
async def test_another_answer_is_a_failure_and_no_score(fake_openai, record, body):
    fake_openai.answer = lambda _request: (200, body)
    detector = SpanDetector(fake_openai.base_url, max_retries=0)

    outcome = await FaithfulnessWithHHEM(OverlapJudge(), detector).score(record)

    assert isinstance(outcome, MetricFailure)
    assert outcome.error_type == "InvalidResponse"


async def test_an_error_of_the_server_repeats_nothing_of_the_texts(fake_openai, record):
    fake_openai.answer = lambda request: fake_openai.fails(500, f"cannot read {request['answer']}")
    detector = SpanDetector(fake_openai.base_url, max_retries=0)

    with pytest.raises(JudgeError) as failure:
        await detector.verify_claims(record, CLAIMS)

    assert failure.value.outage
    assert "Nile" not in str(failure.value)


async def test_a_path_that_is_not_there_says_what_is_added_to_the_address(fake_openai, record):
    fake_openai.answer = lambda _request: (404, {"detail": "Not Found"})
    detector = SpanDetector(fake_openai.base_url, max_retries=0)

    with pytest.raises(JudgeError, match="base_url, to which /v1/lettucedetect/spans is added"):
        await detector.verify_claims(record, CLAIMS)


async def test_a_copy_asks_the_same_server(server, record):
    copied = pickle.loads(pickle.dumps(server(Bread=0.7)))

    assert [verdict.supported for verdict in await copied.verify_claims(record, CLAIMS)] == [True, True, False]


async def test_reference_pairs_are_asked_for_once_before_anything_is_scored(fake_openai, record):
    def answer(request):
        wrong = "Berlin" in json.dumps(request["contexts"])
        spans = [{"start": 0, "end": 3, "hallucination_score": 0.99}] if wrong else []
        return 200, {"predictions": spans}

    fake_openai.answer = answer
    pair = ReferencePair(premise="It is Berlin.", hypothesis="It is Paris.", probability=0.01)
    detector = SpanDetector(fake_openai.base_url, reference_pairs=[pair])

    await detector.verify_claims(record, CLAIMS)
    await detector.verify_claims(record, CLAIMS)

    assert [request["answer"] for request in fake_openai.requests] == ["It is Paris.", *[" ".join(CLAIMS)] * 2]


async def test_a_server_with_other_weights_scores_nothing(fake_openai, record):
    fake_openai.answer = lambda _request: (200, {"predictions": []})
    pair = ReferencePair(premise="It is Berlin.", hypothesis="It is Paris.", probability=0.01)
    detector = SpanDetector(fake_openai.base_url, name="ours", reference_pairs=[pair])

    outcome = await ContextAdherence(detector).score(record)

    assert isinstance(outcome, MetricFailure)
    assert outcome.error_type == "ours_reference_mismatch"
