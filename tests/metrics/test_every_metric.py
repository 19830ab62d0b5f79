"""What holds for all metrics alike."""

from __future__ import annotations

import pytest

from ragspan.exceptions import ConfigurationError, JudgeError
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness, FaithfulnessWithHHEM
from ragspan.metrics.base import Screening
from ragspan.outcomes import MetricFailure


def with_the_judge_as_classifier(judge, **options):
    return FaithfulnessWithHHEM(judge, judge, **options)


METRICS = [ContextAdherence, Completeness, ContextUtilization, Faithfulness, with_the_judge_as_classifier]


class FailingJudge:
    """Cannot be reached."""

    name = "failing"

    async def _fail(self, *args):
        raise JudgeError("APIConnectionError", "Connection error.")

    vote_adherence = rate_completeness = extract_claims = verify_claims = judge_usefulness = _fail


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"status": "aborted", "response": None}, "answer_aborted"),
        ({"status": "error", "error_type": "ValueError"}, "answer_error"),
        ({"status": "interrupted"}, "interrupted"),
        ({"response": None}, "no_response"),
        ({"response": " \n"}, "no_response"),
        ({"contexts": None}, "contexts_unknown"),
        ({"contexts": []}, "no_contexts"),
        ({"contexts": ["", " "]}, "no_contexts"),
    ],
)
async def test_it_does_not_apply_and_asks_no_judge(fixed_judge, answered, metric, changes, reason):
    judge = fixed_judge()

    outcome = await metric(judge).score(answered(**changes))

    assert outcome.reason == reason
    assert outcome == metric(judge).screen(answered(**changes))
    assert judge.asked == []


@pytest.mark.parametrize("metric", METRICS)
async def test_a_judge_that_fails_makes_a_failure_of_its_type(answered, metric):
    outcome = await metric(FailingJudge()).score(answered())

    assert outcome == MetricFailure(error_type="APIConnectionError", message="Connection error.")


@pytest.mark.parametrize("metric", METRICS)
def test_it_can_screen_a_record_before_a_judge_is_paid(fixed_judge, answered, metric):
    assert isinstance(metric(fixed_judge()), Screening)
    assert metric(fixed_judge()).screen(answered()) is None


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan"), "0.5", True, None])
def test_a_threshold_that_is_no_number_from_0_to_1_is_an_error(fixed_judge, metric, threshold):
    with pytest.raises(ConfigurationError, match="threshold should be a number from 0 to 1"):
        metric(fixed_judge(), threshold=threshold)


@pytest.mark.parametrize("metric", [ContextAdherence, Completeness])
@pytest.mark.parametrize("polls", [0, -1, 1.0, "3", True, None])
def test_polls_that_are_no_whole_number_of_at_least_1_are_an_error(fixed_judge, metric, polls):
    with pytest.raises(ConfigurationError, match="polls should be a whole number, at least 1"):
        metric(fixed_judge(), polls=polls)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("judge", "named"), [("gpt-4o-mini", "a str"), (FailingJudge, "the class FailingJudge")])
def test_a_judge_that_cannot_be_asked_is_an_error_that_names_it(metric, judge, named):
    with pytest.raises(ConfigurationError, match=f"judge should be an object with a method .*, not {named}"):
        metric(judge)


def test_the_names_are_those_of_the_attributes(fixed_judge):
    names = [metric(fixed_judge()).name for metric in METRICS]

    assert names == ["context_adherence", "completeness", "context_utilization", "faithfulness", "faithfulness_hhem"]
