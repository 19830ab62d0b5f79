"""The interactive plots, as the plain data that plotly.js draws: counts and quartiles, never the scores themselves.

Colours are roles (`pass`, `ink`, ...), which the page's script replaces by those of its light or dark theme.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ragspan.datasets.report.distribution import BINS, Distribution
from ragspan.datasets.results import MetricSummary

Role: TypeAlias = Literal["pass", "fail", "bar"]

_EDGES = [place / BINS for place in range(BINS + 1)]
_BOX_DOMAIN, _HISTOGRAM_DOMAIN = [0.84, 1.0], [0.0, 0.76]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """One bar of a histogram."""

    span: str
    """From where to where, in words."""
    count: int
    share: float
    """Of all scores, 0..1."""
    height: float
    """Of the highest bar's, 0..1."""
    role: Role
    """Whether scores in there pass; `bar` where some do, or where there is no threshold."""


def bars(scores: Distribution, threshold: float | None) -> list[Bar]:
    """The histogram's bars, from the lowest scores to the highest."""
    return [
        Bar(
            span=f"{low:.1f} to {'' if high == 1 else 'below '}{high:.1f}",
            count=count,
            share=count / scores.scored,
            height=count / max(scores.counts),
            role=_role(low, high, threshold),
        )
        for low, high, count in zip(_EDGES, _EDGES[1:], scores.counts, strict=False)
    ]


def _role(low: float, high: float, threshold: float | None) -> Role:
    if threshold is None or low < threshold < high:
        return "bar"
    return "pass" if low >= threshold else "fail"


def metric_figure(summary: MetricSummary, scores: Distribution) -> dict[str, Any]:
    """A box plot above a histogram, on one scale from 0 to 1, with the threshold as a line through both."""
    return {"data": [_histogram(bars(scores, summary.threshold)), _box(summary, scores)], "layout": _layout(summary)}


def _histogram(shown: Sequence[Bar]) -> dict[str, Any]:
    return {
        "type": "bar",
        "x": [low + 0.5 / BINS for low in _EDGES[:-1]],
        "y": [bar.count for bar in shown],
        "width": 0.96 / BINS,
        "customdata": [[bar.span, f"{bar.share:.1%}"] for bar in shown],
        "hovertemplate": "%{customdata[0]}<br>%{y:,} answers (%{customdata[1]})<extra></extra>",
        "marker": {"color": [bar.role for bar in shown]},
    }


def _box(summary: MetricSummary, scores: Distribution) -> dict[str, Any]:
    return {
        "type": "box",
        "orientation": "h",
        "y0": 0,
        "yaxis": "y2",
        "q1": [scores.lower_quartile],
        "median": [scores.median],
        "q3": [scores.upper_quartile],
        "lowerfence": [scores.lower_whisker],
        "upperfence": [scores.upper_whisker],
        "mean": [summary.mean],
        "boxpoints": False,
        "width": 0.6,
        "line": {"color": "ink", "width": 1.5},
        "fillcolor": "fill",
        "hoverinfo": "x",
    }


def _layout(summary: MetricSummary) -> dict[str, Any]:
    axis = {"fixedrange": True, "zeroline": False}
    layout = {
        "height": 300,
        "margin": {"l": 44, "r": 12, "t": 20, "b": 36},
        "showlegend": False,
        "bargap": 0,
        "dragmode": False,
        "xaxis": axis | {"range": [-0.02, 1.02], "tick0": 0, "dtick": 0.2, "anchor": "y", "title": {"text": "score"}},
        "yaxis": axis
        | {"domain": _HISTOGRAM_DOMAIN, "rangemode": "tozero", "tickformat": ",d", "title": {"text": "answers"}},
        "yaxis2": axis | {"domain": _BOX_DOMAIN, "visible": False, "range": [-0.5, 0.5]},
    }
    if summary.threshold is not None:
        layout |= _threshold_mark(summary.threshold)
    return layout


def _threshold_mark(threshold: float) -> dict[str, Any]:
    is_left = threshold <= 0.5  # noqa: PLR2004 - the middle of the scale: the words stay inside the plot
    return {
        "shapes": [
            {
                "type": "line",
                "xref": "x",
                "yref": "paper",
                "x0": threshold,
                "x1": threshold,
                "y0": 0,
                "y1": 1,
                "line": {"color": "threshold", "width": 1.5, "dash": "dash"},
            }
        ],
        "annotations": [
            {
                "xref": "x",
                "yref": "paper",
                "x": threshold,
                "y": 1.0,
                "yanchor": "bottom",
                "xanchor": "left" if is_left else "right",
                "text": f"passes from {threshold:.2f}",
                "showarrow": False,
                "font": {"size": 11, "color": "threshold"},
            }
        ],
    }
