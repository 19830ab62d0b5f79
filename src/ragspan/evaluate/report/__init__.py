"""The report of an evaluation: one HTML file that loads nothing and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragspan.evaluate.evaluated import Evaluation, counted_rows, share_lines
from ragspan.evaluate.gates import GateResult
from ragspan.evaluate.report.answer_cards import show_answers
from ragspan.evaluate.report.comparison import Comparison, MetricComparison, Regression, compare
from ragspan.evaluate.report.failing import failing_of
from ragspan.evaluate.report.head import counts, first_steps, not_scored, trust, worst_first
from ragspan.evaluate.report.risk_signs import CAUSES, REASONS, Distribution, Sign, distribution, signs_of
from ragspan.evaluate.row_file import ResultFile
from ragspan.evaluate.summaries import MetricSummary
from ragspan.evaluate.written_files import replacing
from ragspan.metrics.metric import Guide
from ragspan.metrics.metric_catalogue import guide_of
from ragspan.telemetry.values import legible

if TYPE_CHECKING:
    import jinja2

__all__ = [
    "Comparison",
    "MetricComparison",
    "Regression",
    "Sign",
    "compare",
    "signs_of",
    "write_report",
]

_BAD_ROWS_SHOWN = 20


class MetricView(NamedTuple):
    """One metric with all that the page shows about it."""

    anchor: str
    """The id of its part of the page."""
    summary: MetricSummary
    scores: Distribution | None
    signs: Sequence[Sign]
    guide: Guide | None
    change: MetricComparison | None

    @property
    def name(self) -> str:
        return self.summary.metric

    @property
    def is_risky(self) -> bool:
        return any(sign.level == "high" for sign in self.signs)


def write_report(
    evaluation: Evaluation,
    path: str | os.PathLike[str],
    *,
    baseline: Evaluation | ResultFile | None = None,
    gates: Sequence[GateResult] = (),
    title: str | None = None,
) -> None:
    """Write the evaluation as one self-contained HTML file, which opens from a disk and loads nothing.

    Args:
        evaluation: what `ragspan.evaluate.evaluate` returned.
        path: the file; an existing one is replaced, and never half-written. Only its owner may read it.
        baseline: an earlier run to compare with, as an evaluation or as the result file of one.
        gates: what was asked of the scores, and whether it held; see `ragspan.evaluate.gates.check_gates`.
        title: the headline.

    Raises:
        ImportError: jinja2 is not installed; the extra `report` has it.
        OSError: the file cannot be written.
    """
    now = datetime.now(timezone.utc)
    text = render(evaluation, baseline=baseline, gates=gates, title=title, written_at=now)
    with replacing(Path(path)) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")


def render(
    evaluation: Evaluation,
    *,
    baseline: Evaluation | ResultFile | None,
    title: str | None,
    written_at: datetime,
    gates: Sequence[GateResult] = (),
) -> str:
    """The whole page as text that any encoder takes.

    Raises:
        ImportError: jinja2 is not installed.
    """
    template = _environment().get_template("report.html")
    from markupsafe import Markup

    comparison = None if baseline is None else compare(evaluation, baseline)
    metrics = _views(evaluation, comparison)
    scored = [metric.summary.scored for metric in metrics] or [0]
    failing = failing_of(evaluation)
    answers = show_answers(evaluation.worst)
    script = _own("report.js")  # the policy's hash is of exactly what is between the tags
    return template.render(
        evaluation=evaluation,
        title=title or (f"RAG evaluation of {evaluation.source}" if evaluation.source else "RAG evaluation"),
        written_at=written_at,
        version=version("ragspan"),
        metrics=metrics,
        scored=(min(scored), max(scored)),
        signs=_shared([sign for metric in metrics for sign in metric.signs]),
        reasons=REASONS,
        not_scored=not_scored(evaluation),
        groups={name: worst_first(values) for name, values in evaluation.by_dimension.items()},
        causes=CAUSES,
        has_causes=any(summary.causes for summary in evaluation.summary.values()),
        answers=answers,
        card_rows={row for answer in answers for row in (answer.row, *answer.same)},
        comparison=comparison,
        failing=failing,
        gates=gates,
        fail_counts=counts([metric.summary for metric in metrics]),
        trust=trust(evaluation),
        shared=share_lines(evaluation),
        steps=first_steps(evaluation),
        counted_rows=counted_rows(evaluation),
        baseline=(baseline.path.name if isinstance(baseline, ResultFile) else baseline and baseline.source)
        or "the baseline",
        bad_rows=evaluation.bad_rows[:_BAD_ROWS_SHOWN],
        policy=_policy(script),
        style=Markup(_own("report.css")),  # noqa: S704 - our own files
        script=Markup(script),  # noqa: S704
    )


def _views(evaluation: Evaluation, comparison: Comparison | None = None) -> list[MetricView]:
    changes = {change.metric: change for change in comparison.metrics} if comparison else {}
    summaries = [evaluation.summary[name] for name in evaluation.metrics]
    return [
        MetricView(
            anchor=f"metric-{number}",
            summary=summary,
            scores=distribution(evaluation.scores.get(summary.metric, ()), summary.threshold),
            signs=signs_of(summary),
            guide=guide_of(summary.metric),
            change=changes.get(summary.metric),
        )
        for number, summary in enumerate(summaries, start=1)
    ]


def _shared(signs: Sequence[Sign]) -> list[Sign]:
    """Each sign once, for all metrics that have it with the same figures; those of high risk first."""
    metrics: dict[Sign, list[str]] = {}
    for sign in signs:
        metrics.setdefault(replace(sign, metric=""), []).append(sign.metric)
    shared = [replace(sign, metric=", ".join(names)) for sign, names in metrics.items()]
    return sorted(shared, key=lambda sign: sign.level != "high")


@cache
def _environment() -> jinja2.Environment:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("a report needs jinja2: pip install 'ragspan[report]'") from error
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_own),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_legible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"signed": _signed, "figure": _figure, "moment": _moment, "place": _place}
    return environment


def _own(name: str) -> str:
    return (resources.files(__name__) / "templates" / name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """A Content-Security-Policy under which a page loads nothing, and runs this script and no other.

    Styles are allowed in the page, for the widths of its bars. They can load nothing either.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none';"
        " form-action 'none'"
    )


def _legible(value: Any) -> Any:
    """Called for everything that a template writes, before it is escaped; leaves our own markup alone."""
    return legible(value) if type(value) is str else value


def _figure(value: float | None, digits: int = 2) -> str:
    """A score in figures, or a dash."""
    return "\N{EN DASH}" if value is None else f"{value:.{digits}f}"


def _place(score: float) -> float:
    """Where a score is in a plot, from left to right."""
    return round(10 + 380 * score, 1)


def _signed(value: float) -> str:
    """A difference of scores with its sign; one that is shown as zero has none."""
    return f"{value:+.3f}".replace("-", "\N{MINUS SIGN}") if round(value, 3) else "0.000"


def _moment(when: datetime) -> str:
    """A time as people write it, with its zone."""
    return f"{when.day} {when:%B %Y, %H:%M %Z}".strip()
