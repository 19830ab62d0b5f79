"""Draws the distributions as PNG pictures, with matplotlib.

Not with plotly, whose pictures need a browser: matplotlib draws them by itself, on any machine of a CI.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragspan.datasets.report.distribution import BINS, Distribution, distribution
from ragspan.datasets.report.figures import bars
from ragspan.datasets.results import Evaluation, MetricSummary
from ragspan.telemetry.values import legible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 144
_WIDTH = 7.0  # inches
_COLOURS = {"pass": "#12806a", "fail": "#c2410c", "bar": "#5a7ea8"}
_INK, _FILL = "#1a2027", "#dbe5f0"
_UNSAFE = re.compile(r"[^a-z0-9]+")
_LONGEST_NAME = 60
_OVERVIEW = "overview"


def write_plots(evaluation: Evaluation, directory: str | os.PathLike[str]) -> list[Path]:
    """Write a histogram and a box plot of each metric, and an overview of all; metrics without scores have none.

    The files are called `<metric>-histogram.png`, `<metric>-box.png` and `overview.png`; the directory is made if it
    is not there, and files with these names are replaced.

    Returns:
        The files, the overview first; none if nothing was scored.

    Raises:
        ImportError: matplotlib is not installed; the extra `report` has it.
        OSError: a file cannot be written.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    found = {name: distribution(evaluation.values(name)) for name in evaluation.metrics}
    scored = {name: scores for name, scores in found.items() if scores is not None}
    if not scored:
        return []
    written = [_save(_overview(evaluation.summary, scored), folder / f"{_OVERVIEW}.png")]
    for name, file_name in zip(scored, _file_names(scored), strict=True):
        summary = evaluation.summary[name]
        written.append(_save(_histogram(summary, scored[name]), folder / f"{file_name}-histogram.png"))
        written.append(_save(_box(summary, scored[name]), folder / f"{file_name}-box.png"))
    return written


def _file_names(metrics: Iterable[str]) -> list[str]:
    """Names that any file system takes, all different."""
    names: list[str] = []
    for metric in metrics:
        plain = _UNSAFE.sub("_", metric.lower()).strip("_")[:_LONGEST_NAME] or "metric"
        same = sum(name == plain or name.startswith(f"{plain}_") for name in names)
        names.append(f"{plain}_{same + 1}" if plain in names else plain)
    return names


def _new_figure(height: float) -> Figure:
    try:
        from matplotlib.figure import Figure  # not pyplot, which keeps every figure and wants the main thread
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'ragspan[report]'") from error
    return Figure(figsize=(_WIDTH, height), layout="constrained")


def _histogram(summary: MetricSummary, scores: Distribution) -> Figure:
    figure = _new_figure(3.6)
    axes = figure.subplots()
    for place, bar in enumerate(bars(scores, summary.threshold)):
        axes.bar((place + 0.5) / BINS, bar.count, width=0.96 / BINS, color=_COLOURS[bar.role])
    axes.set_ylabel("answers")
    axes.locator_params(axis="y", integer=True)
    _finish(axes, summary)
    return figure


def _box(summary: MetricSummary, scores: Distribution) -> Figure:
    figure = _new_figure(2.0)
    axes = figure.subplots()
    _draw_boxes(axes, [(summary, scores)])
    axes.set_yticks([])
    _finish(axes, summary)
    return figure


def _overview(summaries: Mapping[str, MetricSummary], scored: Mapping[str, Distribution]) -> Figure:
    figure = _new_figure(1.2 + 0.55 * len(scored))
    axes = figure.subplots()
    _draw_boxes(axes, [(summaries[name], scores) for name, scores in scored.items()])
    axes.set_yticks(range(len(scored)), [_label(name) for name in scored], parse_math=False)
    for place, name in enumerate(scored):
        threshold = summaries[name].threshold
        if threshold is not None:
            axes.plot([threshold, threshold], [place - 0.4, place + 0.4], color=_INK, linestyle="--", linewidth=1)
    axes.invert_yaxis()
    axes.set_title("Scores by metric: quartiles, mean (diamond), threshold (dashes)", fontsize=10, loc="left")
    _set_scale(axes)
    return figure


def _draw_boxes(axes: Axes, items: Sequence[tuple[MetricSummary, Distribution]]) -> None:
    boxes: list[dict[str, Any]] = [
        {
            "q1": scores.lower_quartile,
            "med": scores.median,
            "q3": scores.upper_quartile,
            "whislo": scores.lower_whisker,
            "whishi": scores.upper_whisker,
            "mean": summary.mean,
            "fliers": [],
        }
        for summary, scores in items
    ]
    axes.bxp(
        boxes,
        positions=range(len(boxes)),
        orientation="horizontal",
        widths=0.5,
        showmeans=True,
        showfliers=False,
        patch_artist=True,
        boxprops={"facecolor": _FILL, "edgecolor": _INK},
        medianprops={"color": _INK, "linewidth": 2},
        meanprops={"marker": "D", "markerfacecolor": _COLOURS["bar"], "markeredgecolor": _INK, "markersize": 6},
    )


def _finish(axes: Axes, summary: MetricSummary) -> None:
    figures = {"mean": summary.mean, "median": summary.median, "deviation": summary.standard_deviation}
    told = ", ".join(f"{name} {value:.2f}" for name, value in figures.items() if value is not None)
    passing = "" if summary.threshold is None else f"; passes from {summary.threshold:.2f} (dashes)"
    title = f"{_label(summary.metric)}: {told}, {summary.scored:,} scored{passing}"
    axes.set_title(title, fontsize=10, loc="left", parse_math=False)
    if summary.threshold is not None:
        axes.axvline(summary.threshold, color=_INK, linestyle="--", linewidth=1)
    _set_scale(axes)


def _set_scale(axes: Axes) -> None:
    axes.set_xlim(-0.02, 1.02)
    axes.set_xticks([place / 5 for place in range(6)])
    axes.set_xlabel("score")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#dde2e7", linewidth=0.8)
    axes.set_axisbelow(True)


def _label(metric: str) -> str:
    return legible(metric)[:_LONGEST_NAME]


def _save(figure: Figure, path: Path) -> Path:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a name that the font lacks shows as boxes
        figure.savefig(path, dpi=_DPI, metadata={"Software": None})
    return path
