"""What holds for all metrics alike."""

from __future__ import annotations

import pytest

from ragspan.exceptions import ConfigurationError, JudgeError
from ragspan.judges import OverlapJudge
from ragspan.metrics import (
    AnswerRelevance,
    ChunkAttribution,
    ChunkUtilization,
    Completeness,
    ContextAdherence,
    ContextRelevance,
    ContextUtilization,
    Faithfulness,
    FaithfulnessWithHHEM,
)
from ragspan.outcomes import MetricFailure


def with_the_judge_as_classifier(judge, **options):
    return FaithfulnessWithHHEM(judge, judge, **options)


AGAINST_CONTEXTS = [
    ContextAdherence,
    Completeness,
    ContextUtilization,
    Faithfulness,
    with_the_judge_as_classifier,
    ChunkAttribution,
    ChunkUtilization,
]
METRICS = [*AGAINST_CONTEXTS, AnswerRelevance, ContextRelevance]
UNFINISHED = [
    ({"status": "aborted", "response": None}, "answer_aborted"),
    ({"status": "error", "error_type": "ValueError"}, "answer_error"),
    ({"status": "interrupted"}, "interrupted"),
]
NO_RESPONSE = [({"response": None}, "no_response"), ({"response": " \n"}, "no_response")]
NO_QUESTION = [({"question": None}, "no_question"), ({"question": "\t"}, "no_question")]
NO_CONTEXTS = [
    ({"contexts": None}, "contexts_unknown"),
    ({"contexts": []}, "no_contexts"),
    ({"contexts": ["", " "]}, "no_contexts"),
]


def cases(metrics, reasons):
    return [(metric, changes, reason) for metric in metrics for changes, reason in reasons]


class FailingJudge:
    """Cannot be reached."""

    name = "failing"

    async def _fail(self, *args):
        raise JudgeError("APIConnectionError", "Connection error.")

    vote_adherence = rate_completeness = extract_claims = verify_claims = judge_usefulness = _fail
    rate_answer_relevance = rate_context_relevance = measure_utilization = _fail


@pytest.mark.parametrize(
    ("metric", "changes", "reason"),
    [
        *cases(METRICS, UNFINISHED),
        *cases([*AGAINST_CONTEXTS, AnswerRelevance], NO_RESPONSE),
        *cases([*AGAINST_CONTEXTS, ContextRelevance], NO_CONTEXTS),
        *cases([AnswerRelevance, ContextRelevance], NO_QUESTION),
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


def test_a_metric_that_the_embedded_judge_cannot_answer_says_who_can():
    with pytest.raises(
        ConfigurationError, match=r"judge is an OverlapJudge, .* needs an LLM judge: leave it out, or set RAGSPAN_JUDGE"
    ):
        AnswerRelevance(OverlapJudge())


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("judge", "named"), [("gpt-4o-mini", "'gpt-4o-mini'"), (FailingJudge, "the class FailingJudge")]
)
def test_a_judge_that_cannot_be_asked_is_an_error_that_names_it(metric, judge, named):
    with pytest.raises(ConfigurationError, match=f"judge is {named}, but should be an object with a method "):
        metric(judge)
