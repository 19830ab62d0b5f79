"""Guards behind a real endpoint that answers in the forms of Granite Guardian and of Lynx."""

from __future__ import annotations

import json
import math
import pickle

import pytest

from ragspan.exceptions import ConfigurationError
from ragspan.judges import GuardDetector, OverlapJudge
from ragspan.judges.session import metered
from ragspan.metrics import ContextAdherence, FaithfulnessWithHHEM
from ragspan.outcomes import MetricFailure
from ragspan.records import RagRecord

CLAIMS = ["The Nile ends in Egypt.", "It is 900 km long."]


@pytest.fixture
def record():
    return RagRecord(
        question="Where?", contexts=["The Nile ends in Egypt.", " ", "It is 6650 km long."], response=" ".join(CLAIMS)
    )


@pytest.fixture
def make_guard(fake_openai):
    def make(form, **options):
        return GuardDetector("guard", form, base_url=fake_openai.base_url, max_retries=0, **options)

    return make


def tokens(*words):
    """The words of a reply with the probabilities of what could have stood in their places."""
    return [
        {
            "token": next(iter(found)),
            "logprob": math.log(next(iter(found.values()))),
            "top_logprobs": [{"token": word, "logprob": math.log(share)} for word, share in found.items()],
        }
        for found in words
    ]


def granite(fake_openai, verdict, logprobs=None):
    status, body = fake_openai.says(f"<score> {verdict} </score>", usage={"prompt_tokens": 7, "completion_tokens": 3})
    if logprobs:
        body["choices"][0]["logprobs"] = {"content": logprobs}
    return status, body


async def test_granite_guardian_is_asked_by_its_chat_template(fake_openai, make_guard, record):
    fake_openai.answer = lambda _request: granite(fake_openai, "no")

    await make_guard("granite-guardian").verify_claims(record, CLAIMS[:1])

    [request] = fake_openai.requests
    assert request["messages"] == [
        {"role": "user", "content": "Where?"},
        {"role": "assistant", "content": "The Nile ends in Egypt."},
    ]
    assert [document["text"] for document in request["documents"]] == ["The Nile ends in Egypt.", "It is 6650 km long."]
    assert request["chat_template_kwargs"] == {"guardian_config": {"criteria_id": "groundedness"}, "think": False}
    assert (request["model"], request["temperature"]) == ("guard", 0.0)
    assert "response_format" not in request


async def test_yes_means_that_the_text_is_not_grounded(fake_openai, make_guard, record):
    fake_openai.answer = lambda request: granite(
        fake_openai, "yes" if "900" in request["messages"][-1]["content"] else "no"
    )

    score = await FaithfulnessWithHHEM(OverlapJudge(), make_guard("granite-guardian")).score(record)

    assert (score.value, score.judge) == (0.5, "granite-guardian:guard")
    assert [verdict.supported for verdict in score.evidence] == [True, False]


async def test_its_probability_is_that_of_no_against_yes(fake_openai, make_guard, record):
    logprobs = tokens({"<score>": 1.0}, {" yes": 0.6, " no": 0.2, "Yes": 0.1}, {"</score>": 1.0})
    fake_openai.answer = lambda _request: granite(fake_openai, "yes", logprobs)

    score = await ContextAdherence(make_guard("granite-guardian")).score(record)

    assert score.value == pytest.approx(0.2 / 0.9)
    assert score.label == "fail"


async def test_a_reply_without_a_score_is_no_verdict(fake_openai, make_guard, record):
    fake_openai.answer = lambda _request: fake_openai.says("I would rather not say yes or no.")

    outcome = await FaithfulnessWithHHEM(OverlapJudge(), make_guard("granite-guardian")).score(record)

    assert isinstance(outcome, MetricFailure)
    assert outcome.error_type == "missing_verdicts"


async def test_what_the_requests_cost_is_counted(fake_openai, make_guard, record):
    fake_openai.answer = lambda _request: granite(fake_openai, "no")

    with metered() as meter:
        await make_guard("granite-guardian").verify_claims(record, CLAIMS)

    assert (meter.total.requests, meter.total.input_tokens, meter.total.output_tokens) == (2, 14, 6)


@pytest.mark.parametrize(
    ("reply", "supported", "reason"),
    [
        ({"REASONING": ["It says so.", "Nothing else."], "SCORE": "PASS"}, True, "It says so. Nothing else."),
        ({"REASONING": "It is longer.", "SCORE": "FAIL"}, False, "It is longer."),
    ],
)
async def test_lynx_answers_with_its_reasons(fake_openai, make_guard, record, reply, supported, reason):
    fake_openai.answer = lambda _request: fake_openai.says(json.dumps(reply))

    [verdict] = await make_guard("lynx").verify_claims(record, CLAIMS[:1])

    assert (verdict.supported, verdict.probability) == (supported, None)
    assert verdict.explanation.endswith(f": {reason}")


async def test_lynx_often_answers_no_json(fake_openai, make_guard, record):
    fake_openai.answer = lambda _request: fake_openai.says('{"REASONING": [\'It is "so".\'], "SCORE": FAIL}')

    [verdict] = await make_guard("lynx").verify_claims(record, CLAIMS[:1])

    assert not verdict.supported


async def test_a_text_that_names_a_field_of_the_prompt_stays_a_text(fake_openai, make_guard):
    fake_openai.answer = lambda _request: fake_openai.says('{"SCORE": "PASS"}')
    record = RagRecord(question="{document}", contexts=["secret {answer}"], response="{question}")

    await make_guard("lynx", template="Q {question} D {document} A {answer}").verify_claims(record, ["{question}"])

    assert fake_openai.requests[0]["messages"][0]["content"] == "Q {document} D secret {answer} A {question}"


async def test_long_contexts_are_cut_and_the_verdict_says_so(fake_openai, make_guard):
    fake_openai.answer = lambda _request: granite(fake_openai, "no")
    record = RagRecord(question="q", contexts=["short", "long " * 1000], response="r")

    [verdict] = await make_guard("granite-guardian", max_context_chars=100).verify_claims(record, ["r"])

    assert [len(document["text"]) for document in fake_openai.requests[0]["documents"]] == [5, 95]
    assert verdict.explanation.endswith("[it read only the beginnings of the contexts]")


async def test_a_copy_asks_the_same_guard(fake_openai, make_guard, record):
    fake_openai.answer = lambda _request: granite(fake_openai, "no")

    copied = pickle.loads(pickle.dumps(make_guard("granite-guardian", name="ours")))

    assert copied.name == "ours"
    assert [verdict.supported for verdict in await copied.verify_claims(record, CLAIMS)] == [True, True]


def test_a_form_that_is_none_is_refused():
    with pytest.raises(ConfigurationError, match="form is 'llama', but should be 'granite-guardian' or 'lynx'"):
        GuardDetector("m", "llama", base_url="http://localhost:8000/v1")


def test_a_template_without_a_field_is_refused():
    with pytest.raises(ConfigurationError, match="but should be a text with the fields"):
        GuardDetector("m", "lynx", base_url="http://localhost:8000/v1", template="{question}")
