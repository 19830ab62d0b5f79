"""Outcomes as attributes: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ragspan.config import ContentPlace
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score, ScoredRecord
from ragspan.records import RagRecord
from ragspan.telemetry import semconv
from ragspan.telemetry.claim_map import claim_map
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


def answer_groups(scored: ScoredRecord, options: EmitterOptions) -> Iterator[Attributes]:
    """Everything for the answer's span, in groups; at the limit of attributes the last ones give way first."""
    record, allows, explain = scored.record, options.content.allows, options.content.explanation
    scores = {metric: outcome for metric, outcome in scored.outcomes.items() if isinstance(outcome, Score)}
    singles: dict[str, object] = {}
    for metric, outcome in scored.outcomes.items():
        singles |= flat_outcome(metric, outcome)
    singles |= {
        semconv.ERROR_TYPE: error_type(record.error_type) if record.status == "error" else None,
        semconv.ANSWER_REFUSAL: scored.refusal,
        semconv.LANGUAGE: scored.language,
        semconv.CONTEXTS_COUNT: None if record.contexts is None else len(record.contexts),
        semconv.ANSWER_SWALLOWED_ERRORS: record.swallowed_errors or None,
        semconv.TAG_TAGS: record.tags or None,
        **options.dimensions.of(record),
        semconv.AGENT_NAME: named(record.name) if record.is_agent and options.openinference else None,
        semconv.JUDGE: _joined(score.judge for score in scores.values()),
        semconv.PROMPT_VERSION: _joined(score.prompt_version for score in scores.values()),
        **{semconv.LABEL + metric: score.label for metric, score in scores.items()},
        **{semconv.CAUSE + metric: score.cause for metric, score in scores.items()},
        **{semconv.FALLBACK + metric: score.fallback and named(score.fallback) for metric, score in scores.items()},
    }
    yield from ({key: value} for key, value in singles.items())
    question = record.question if allows("spans", hidden_as="inputs") else None
    response = record.response if allows("spans", hidden_as="outputs") else None
    yield {
        semconv.INPUT_VALUE: question,
        semconv.INPUT_MIME_TYPE: None if question is None else semconv.MIME_TEXT,
        semconv.OUTPUT_VALUE: response,
        semconv.OUTPUT_MIME_TYPE: None if response is None else semconv.MIME_TEXT,
    }
    for metric, score in scores.items():
        yield {semconv.EXPLANATION + metric: explain(score)}
    if response is not None:  # the map is of its text
        for metric, score in scores.items():
            yield {semconv.CLAIMS + metric: claim_map(record, score, options.content)}
    for metric, score in scores.items():
        for name, figure in score.details.items():
            yield {f"{semconv.DETAIL}{metric}.{name}": figure}
    if options.openinference:
        for index, (metric, score) in enumerate(scores.items()):
            yield openinference_copy(index, metric, score)


def flat_outcome(metric: str, outcome: Outcome) -> Attributes:
    """The one attribute that says what became of the metric."""
    match outcome:
        case Score():
            return {semconv.SCORE + metric: float(outcome.value)}
        case NotApplicable():
            return {semconv.NOT_APPLICABLE + metric: named(outcome.reason)}
        case MetricFailure():
            # Never the message: it may quote what a provider or a parser quoted of the user's text.
            return {semconv.ERROR + metric: error_type(outcome.error_type)}


def openinference_copy(index: int, metric: str, score: Score) -> Attributes:
    """A whole OpenInference evaluation, without the explanation, which would double the span's size."""
    return {
        semconv.EVALUATION_NAME.format(index): named(metric),
        semconv.EVALUATION_SCORE.format(index): float(score.value),
        semconv.EVALUATION_LABEL.format(index): score.label,
        semconv.EVALUATION_ANNOTATOR_KIND.format(index): annotator_kind(score),
        semconv.EVALUATION_IDENTIFIER.format(index): named(score.judge or _OWN_IDENTIFIER),
    }


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
                semconv.CAUSE + metric: outcome.cause,
                semconv.FALLBACK + metric: outcome.fallback and named(outcome.fallback),
            }
        case MetricFailure():
            return name | {semconv.ERROR_TYPE: error_type(outcome.error_type)}
        case NotApplicable():
            return name


def response_id(record: RagRecord) -> str | None:
    """The provider's id of the reply that was judged: the last that a model gave."""
    last = max(record.generations, key=lambda one: one.ended_ns, default=None)
    return last.response_id and named(last.response_id) if last is not None else None


def _joined(names: Iterable[str | None]) -> str | None:
    """Several in one value, sorted."""
    distinct = {name for name in names if name is not None}
    return named(",".join(sorted(distinct))) if distinct else None
