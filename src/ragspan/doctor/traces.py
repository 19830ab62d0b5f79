"""Shows exported spans as people read them: each trace as a tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from rich.text import Text
from rich.tree import Tree

from ragspan.telemetry import semconv
from ragspan.telemetry.console import shortened

_COLOURS = {"pass": "green", "fail": "red"}


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricOutcome:
    """What a span says about one metric."""

    metric: str
    score: float | None = None
    label: str | None = None
    explanation: str | None = None
    reason: str | None = None
    """Why there is no score."""


def outcomes_of(span: ReadableSpan) -> list[MetricOutcome]:
    """The outcomes on an answer's span or on an evaluation span."""
    attributes = span.attributes or {}
    if semconv.GEN_AI_EVALUATION_NAME in attributes:
        return [_late_outcome(attributes)]
    return [
        MetricOutcome(
            metric=metric,
            score=_number(attributes.get(semconv.score_attribute(metric))),
            label=_text(attributes.get(semconv.label_attribute(metric))),
            explanation=_text(attributes.get(semconv.explanation_attribute(metric))),
            reason=_text(attributes.get(semconv.not_applicable_attribute(metric)))
            or _text(attributes.get(semconv.error_attribute(metric))),
        )
        for metric in _metrics_on(attributes)
    ]


def _metrics_on(attributes: Mapping[str, Any]) -> list[str]:
    prefixes = [
        make("") for make in (semconv.score_attribute, semconv.not_applicable_attribute, semconv.error_attribute)
    ]
    names = [key.removeprefix(prefix) for key in attributes for prefix in prefixes if key.startswith(prefix)]
    return list(dict.fromkeys(names))


def _late_outcome(attributes: Mapping[str, Any]) -> MetricOutcome:
    return MetricOutcome(
        metric=str(attributes[semconv.GEN_AI_EVALUATION_NAME]),
        score=_number(attributes.get(semconv.GEN_AI_EVALUATION_SCORE_VALUE)),
        label=_text(attributes.get(semconv.GEN_AI_EVALUATION_SCORE_LABEL)),
        explanation=_text(attributes.get(semconv.GEN_AI_EVALUATION_EXPLANATION)),
        reason=_text(attributes.get(semconv.ERROR_TYPE)),
    )


def trace_trees(spans: Sequence[ReadableSpan]) -> Iterator[Tree]:
    """A tree for each trace, in order of their start."""
    children: dict[int | None, list[ReadableSpan]] = defaultdict(list)
    ordered = sorted(spans, key=lambda span: span.start_time or 0)
    known = {span.context.span_id for span in ordered if span.context}
    for span in ordered:
        parent = span.parent.span_id if span.parent and span.parent.span_id in known else None
        children[parent].append(span)
    for root in children[None]:
        yield _tree(root, children)


def _tree(span: ReadableSpan, children: Mapping[int | None, Sequence[ReadableSpan]]) -> Tree:
    tree = Tree(_title(span), guide_style="dim")
    for child in children.get(span.context.span_id if span.context else None, ()):
        tree.add(_tree(child, children))
    for outcome in outcomes_of(span):
        tree.add(_line(outcome))
    return tree


def _title(span: ReadableSpan) -> Text:
    attributes = span.attributes or {}
    milliseconds = ((span.end_time or 0) - (span.start_time or 0)) / 1e6
    title = Text(span.name, style="bold", overflow="fold")
    title.append(f"  {milliseconds:.1f} ms", style="cyan")
    status = attributes.get(semconv.ANSWER_STATUS)
    if status is not None:
        title.append(f"  {status}", style="" if status == "complete" else "yellow")
    if attributes.get(semconv.ANSWER_REFUSAL):
        title.append("  refusal", style="yellow")
    return title


def _line(outcome: MetricOutcome) -> Text:
    line = Text(f"{outcome.metric:<20}", overflow="fold")
    if outcome.score is None:
        return line.append(f"  —   {outcome.reason or 'no score'}", style="dim")
    line.append(f" {outcome.score:.2f} ")
    line.append(outcome.label or "", style=_COLOURS.get(outcome.label or "", ""))
    if outcome.label == "fail" and outcome.explanation:
        line.append(f"  {shortened(outcome.explanation)}", style="dim")
    return line


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
