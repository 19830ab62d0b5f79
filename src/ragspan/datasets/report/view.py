"""All that the report's page shows, worked out from an evaluation; the template only lays it out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version

from ragspan.datasets.report.answers import ShownAnswer, show_answers
from ragspan.datasets.report.comparison import Comparison, MetricComparison, ScoredRun, compare
from ragspan.datasets.report.distribution import Bar, Distribution, distribution
from ragspan.datasets.report.guides import GUIDES, REASONS, Guide
from ragspan.datasets.report.signs import Sign, signs_of
from ragspan.datasets.result_file import ResultFile
from ragspan.datasets.results import BadRow, Evaluation, MetricSummary
from ragspan.outcomes import Usage

BAD_ROWS_SHOWN = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricView:
    """One metric, in all the places where it stands."""

    anchor: str
    """Names its part of the page."""
    summary: MetricSummary
    scores: Distribution | None
    bars: tuple[Bar, ...]
    signs: tuple[Sign, ...]
    guide: Guide | None
    change: MetricComparison | None

    @property
    def name(self) -> str:
        return self.summary.metric

    @property
    def not_scored(self) -> int:
        return sum(self.summary.not_scored.values())

    @property
    def passed_share(self) -> float | None:
        """Of the scored ones; None where none was scored, or the metric has no threshold."""
        if not self.summary.scored or self.summary.threshold is None:
            return None
        return self.summary.passed / self.summary.scored

    @property
    def is_risky(self) -> bool:
        return any(sign.level == "high" for sign in self.signs)

    @property
    def reasons(self) -> list[tuple[str, int, str | None]]:
        """Why there is no score: the reason, how often, and what it means, if it is one of ragspan's own."""
        return [(reason, count, REASONS.get(reason)) for reason, count in self.summary.not_scored.items()]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportView:
    """The page."""

    title: str
    source: str | None
    """The table's file."""
    columns: str
    """What was read as what."""
    version: str
    """Of ragspan."""
    written_at: datetime
    rows: int
    skipped: Mapping[str, int]
    is_complete: bool
    judges: tuple[str, ...]
    """With the versions of their prompts, as far as the answers below tell."""
    usage: Usage
    seconds: float
    metrics: tuple[MetricView, ...]
    answers: tuple[ShownAnswer, ...]
    comparison: Comparison | None
    baseline: str
    """The baseline's file."""
    bad_rows: tuple[BadRow, ...]
    bad_row_count: int

    @property
    def signs(self) -> list[Sign]:
        """Those of all metrics, high ones first."""
        found = [sign for metric in self.metrics for sign in metric.signs]
        return sorted(found, key=lambda sign: sign.level != "high")

    @property
    def risky(self) -> list[MetricView]:
        return [metric for metric in self.metrics if metric.is_risky]

    @property
    def scored(self) -> tuple[int, int]:
        """The fewest and the most answers that a metric has scored."""
        counts = [metric.summary.scored for metric in self.metrics] or [0]
        return min(counts), max(counts)


def view_of(
    evaluation: Evaluation, *, baseline: ScoredRun | None, title: str | None, written_at: datetime
) -> ReportView:
    """What there is to show."""
    comparison = None if baseline is None else compare(evaluation, baseline)
    return ReportView(
        title=title or (f"RAG evaluation of {evaluation.source}" if evaluation.source else "RAG evaluation"),
        source=evaluation.source,
        columns=evaluation.columns,
        version=version("ragspan"),
        written_at=written_at,
        rows=evaluation.rows,
        skipped=evaluation.skipped,
        is_complete=evaluation.is_complete,
        judges=evaluation.judges,
        usage=evaluation.usage,
        seconds=evaluation.seconds,
        metrics=tuple(metric_views(evaluation, comparison)),
        answers=tuple(show_answers(evaluation.worst)),
        comparison=comparison,
        baseline=_name_of(baseline),
        bad_rows=tuple(evaluation.bad_rows[:BAD_ROWS_SHOWN]),
        bad_row_count=evaluation.bad_row_count,
    )


def metric_views(evaluation: Evaluation, comparison: Comparison | None = None) -> Iterator[MetricView]:
    """Each metric, with what there is to compare it with."""
    changes = {change.metric: change for change in comparison.metrics} if comparison else {}
    for number, name in enumerate(evaluation.metrics, start=1):
        summary = evaluation.summary[name]
        scores = distribution(evaluation.values(name))
        yield MetricView(
            anchor=f"metric-{number}",
            summary=summary,
            scores=scores,
            bars=tuple(scores.bars(summary.threshold)) if scores else (),
            signs=tuple(signs_of(summary)),
            guide=GUIDES.get(name),
            change=changes.get(name),
        )


def _name_of(run: ScoredRun | None) -> str:
    name = run.path.name if isinstance(run, ResultFile) else run.source if isinstance(run, Evaluation) else None
    return name or "the baseline"
