"""Outcomes as attributes: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ragspan.config import ContentPlace
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score
from ragspan.records import RagRecord
from ragspan.telemetry import semconv
from ragspan.telemetry.content import EmitterOptions
from ragspan.telemetry.values import error_type, named

Attributes = Mapping[str, object]

_OWN_IDENTIFIER = "ragspan"
_CODE_JUDGES = ("overlap", "hhem", "lettucedetect")
"""Judges that are no language model: the embedded one, and classifiers; another model of a kind has its name after a colon."""


def annotator_kind(score: Score) -> str:
    """OpenInference's word for who judged: `LLM`, or `CODE` where it was no language model, or nobody is named."""
    kind = score.judge.partition(":")[0] if score.judge else None
    return semconv.ANNOTATOR_CODE if kind is None or kind in _CODE_JUDGES else semconv.ANNOTATOR_LLM


def flat_outcome(metric: str, outcome: Outcome) -> Attributes:
    """The one attribute that says what became of the metric."""
    match outcome:
        case Score():
            return {semconv.score_attribute(metric): float(outcome.value)}
        case NotApplicable():
            return {semconv.not_applicable_attribute(metric): named(outcome.reason)}
        case MetricFailure():
            # Never the message: it may quote what a provider or a parser quoted of the user's text.
            return {semconv.error_attribute(metric): error_type(outcome.error_type)}


def openinference_copies(outcomes: Mapping[str, Outcome], options: EmitterOptions) -> Iterator[Attributes]:
    """One whole OpenInference evaluation a score, without the explanation, which would double the span's size."""
    if not options.openinference:
        return
    for index, (metric, score) in enumerate(_scores(outcomes).items()):
        yield {
            semconv.evaluation_attribute(index, "name"): named(metric),
            semconv.evaluation_attribute(index, "score"): float(score.value),
            semconv.evaluation_attribute(index, "label"): score.label,
            semconv.evaluation_attribute(index, "annotator_kind"): annotator_kind(score),
            semconv.evaluation_attribute(index, "identifier"): named(score.judge or _OWN_IDENTIFIER),
        }


def by_importance(
    outcomes: Mapping[str, Outcome], answer: Attributes, content: Attributes, options: EmitterOptions
) -> Iterator[Attributes]:
    """Everything for the answer's span, in groups; at the limit of attributes the last ones give way first.

    `answer` holds facts about the answer, `content` the user's texts if they are wanted.
    """
    scores = _scores(outcomes)
    for metric, outcome in outcomes.items():
        yield flat_outcome(metric, outcome)
    for key, value in answer.items():
        yield {key: value}
    yield {semconv.JUDGE: _joined(score.judge for score in scores.values())}
    yield {semconv.PROMPT_VERSION: _joined(score.prompt_version for score in scores.values())}
    for metric, score in scores.items():
        yield {semconv.label_attribute(metric): score.label}
    for metric, score in scores.items():
        yield _fallback(metric, score)
    yield content
    for metric, score in scores.items():
        yield {semconv.explanation_attribute(metric): options.content.explanation(score)}
    for metric, score in scores.items():
        for name, figure in score.details.items():
            yield {semconv.detail_attribute(metric, name): figure}
    yield from openinference_copies(outcomes, options)


def evaluation_result(metric: str, outcome: Outcome, options: EmitterOptions, place: ContentPlace) -> Attributes:
    """The outcome under the GenAI conventions' own names, for evaluation spans and events."""
    name = {semconv.GEN_AI_EVALUATION_NAME: named(metric)}
    match outcome:
        case Score():
            return name | {
                semconv.GEN_AI_EVALUATION_SCORE_VALUE: float(outcome.value),
                semconv.GEN_AI_EVALUATION_SCORE_LABEL: outcome.label,
                semconv.GEN_AI_EVALUATION_EXPLANATION: options.content.explanation(outcome, place),
                semconv.JUDGE: outcome.judge and named(outcome.judge),
                semconv.PROMPT_VERSION: outcome.prompt_version and named(outcome.prompt_version),
                **_fallback(metric, outcome),
            }
        case MetricFailure():
            return name | {semconv.ERROR_TYPE: error_type(outcome.error_type)}
        case NotApplicable():
            return name


def response_id(record: RagRecord) -> str | None:
    """The provider's id of the reply that was judged: the last that a model gave."""
    last = max(record.generations, key=lambda one: one.ended_ns, default=None)
    return last.response_id and named(last.response_id) if last is not None else None


def _scores(outcomes: Mapping[str, Outcome]) -> dict[str, Score]:
    return {metric: outcome for metric, outcome in outcomes.items() if isinstance(outcome, Score)}


def _fallback(metric: str, score: Score) -> Attributes:
    """Why another judge than the metric's own stood in, if one did."""
    return {semconv.fallback_attribute(metric): score.fallback and named(score.fallback)}


def _joined(names: Iterable[str | None]) -> str | None:
    """Several in one value, sorted."""
    distinct = {name for name in names if name is not None}
    return named(",".join(sorted(distinct))) if distinct else None
