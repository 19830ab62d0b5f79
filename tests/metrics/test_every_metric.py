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
from ragspan.metrics.base import Screening
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
POLLING = [ContextAdherence, Completeness, AnswerRelevance]
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


class PromptingJudge(FailingJudge):
    """Has prompts of a version, and gets to see half of a record."""

    name = "prompting"
    prompt_version = "7"

    def share_read(self, record):
        return 0.5


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


@pytest.mark.parametrize(
    ("metric", "changes"),
    [
        (AnswerRelevance, {"contexts": None}),
        (AnswerRelevance, {"contexts": []}),
        (ContextRelevance, {"response": None}),
        *[(metric, {"question": None}) for metric in AGAINST_CONTEXTS],
    ],
)
def test_it_applies_without_what_it_is_not_about(fixed_judge, answered, metric, changes):
    assert metric(fixed_judge()).screen(answered(**changes)) is None


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
    with pytest.raises(ConfigurationError, match=r"threshold is .*, but should be a number from 0 to 1"):
        metric(fixed_judge(), threshold=threshold)


@pytest.mark.parametrize("metric", POLLING)
@pytest.mark.parametrize("polls", [0, -1, 1.0, "3", True, None])
def test_polls_that_are_no_whole_number_of_at_least_1_are_an_error(fixed_judge, metric, polls):
    with pytest.raises(ConfigurationError, match=r"polls is .*, but should be a whole number, at least 1"):
        metric(fixed_judge(), polls=polls)


@pytest.mark.parametrize("metric", POLLING)
@pytest.mark.parametrize("early_stop", [1, "yes", None])
def test_an_early_stop_that_is_neither_on_nor_off_is_an_error(fixed_judge, metric, early_stop):
    with pytest.raises(ConfigurationError, match=r"early_stop is .*, but should be True or False"):
        metric(fixed_judge(), early_stop=early_stop)


def test_a_metric_that_the_embedded_judge_cannot_answer_says_who_can():
    with pytest.raises(ConfigurationError, match=r"judge is a OverlapJudge, .* needs an LLMJudge, such as OpenAIJudge"):
        AnswerRelevance(OverlapJudge())


@pytest.fixture
def judged(fixed_judge, answered):
    """The score of a metric by a judge that finds everything perfect, with what `kind` says of itself."""

    async def score(metric, kind):
        perfect = fixed_judge(votes=[1] * 3, ratings=[1] * 3, claims=["a"], supported=[1], useful=[1, 1], rated=[1, 1])
        for name in ("name", "prompt_version", "share_read"):
            if hasattr(kind, name):
                setattr(perfect, name, getattr(kind(), name))
        return await metric(perfect).score(answered())

    return score


@pytest.mark.parametrize("metric", METRICS)
async def test_its_score_says_which_prompts_were_used_and_how_much_of_the_texts_was_read(judged, metric):
    score = await judged(metric, PromptingJudge)

    assert (score.value, score.judge, score.prompt_version) == (1.0, "prompting", "7")
    assert score.details["read"] == 0.5


@pytest.mark.parametrize("metric", METRICS)
async def test_its_score_says_neither_where_there_are_no_prompts_and_all_was_read(judged, metric):
    score = await judged(metric, FailingJudge)

    assert score.prompt_version is None
    assert "read" not in score.details


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("judge", "named"), [("gpt-4o-mini", "'gpt-4o-mini'"), (FailingJudge, "the class FailingJudge")]
)
def test_a_judge_that_cannot_be_asked_is_an_error_that_names_it(metric, judge, named):
    with pytest.raises(ConfigurationError, match=f"judge is {named}, but should be an object with a method "):
        metric(judge)


def test_the_names_are_those_of_the_attributes(fixed_judge):
    names = [metric(fixed_judge()).name for metric in METRICS]

    assert names == [
        "context_adherence",
        "completeness",
        "context_utilization",
        "faithfulness",
        "faithfulness_hhem",
        "chunk_attribution",
        "chunk_utilization",
        "answer_relevance",
        "context_relevance",
    ]
