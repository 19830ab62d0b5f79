"""Shows exported spans as people read them: each trace as a tree, and a summary of the scores."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from ragspan.telemetry import semconv

_COLOURS = {"pass": "green", "fail": "red"}
_SHOWN = 110  # characters of an answer or an explanation


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """What came of asking one framework everything."""

    framework: str
    spans: Sequence[ReadableSpan]
    answers: Mapping[int, Sequence[str]]
    """What the caller got, by the id of the span that it asked in."""


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


def trace_trees(session: Session) -> Iterator[Tree]:
    """A tree for each trace, in order of their start."""
    children: dict[int | None, list[ReadableSpan]] = defaultdict(list)
    ordered = sorted(session.spans, key=lambda span: span.start_time or 0)
    known = {span.context.span_id for span in ordered if span.context}
    for span in ordered:
        parent = span.parent.span_id if span.parent and span.parent.span_id in known else None
        children[parent].append(span)
    for root in children[None]:
        tree = _tree(root, children)
        for answer in reversed(session.answers.get(root.context.span_id if root.context else 0, ())):
            tree.children.insert(0, Tree(_quoted(answer), guide_style="dim"))
        yield tree


def _tree(span: ReadableSpan, children: Mapping[int | None, Sequence[ReadableSpan]]) -> Tree:
    tree = Tree(_title(span), guide_style="dim")
    for child in children.get(span.context.span_id if span.context else None, ()):
        tree.add(_tree(child, children))
    for outcome in outcomes_of(span):
        tree.add(_line(outcome))
    return tree


def _quoted(answer: str) -> Text:
    return Text(f"“{_shortened(answer)}”", style="italic", overflow="fold")


def _shortened(text: str) -> str:
    even = " ".join(text.split())
    return even if len(even) <= _SHOWN else even[: _SHOWN - 1] + "…"


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
        line.append(f"  {_shortened(outcome.explanation)}", style="dim")
    return line


@dataclass(slots=True)
class _Tally:
    scores: list[float] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    unscored: int = 0


def summary(sessions: Sequence[Session], *, judge: str) -> Table:
    """Every metric with its counts and its mean; answers without a score count in none of the figures."""
    table = Table(title=f"Scores by the {judge} judge", title_justify="left", title_style="bold")
    table.add_column("metric", no_wrap=True)
    for heading in ("scored", "pass", "fail", "no score", "mean", "lowest"):
        table.add_column(heading, justify="right", no_wrap=True)
    for session in sessions:
        if len(sessions) > 1:
            table.add_section()
            table.add_row(session.framework, style="bold")
        for row in _rows(session.spans):
            table.add_row(*row)
    return table


def _rows(spans: Iterable[ReadableSpan]) -> Iterator[list[str]]:
    tallies: dict[str, _Tally] = defaultdict(_Tally)
    for outcome in (outcome for span in spans for outcome in outcomes_of(span)):
        tally = tallies[outcome.metric]
        if outcome.score is None:
            tally.unscored += 1
        else:
            tally.scores.append(outcome.score)
            tally.labels.append(outcome.label or "")
    for metric, tally in tallies.items():
        yield [
            metric,
            str(len(tally.scores)),
            str(tally.labels.count("pass")),
            str(tally.labels.count("fail")),
            str(tally.unscored),
            f"{statistics.fmean(tally.scores):.2f}" if tally.scores else "—",
            f"{min(tally.scores):.2f}" if tally.scores else "—",
        ]


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
