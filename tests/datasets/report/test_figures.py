from __future__ import annotations

import plotly.graph_objects
import pytest

from ragspan import Score
from ragspan.datasets.report.distribution import distribution
from ragspan.datasets.report.figures import bars, metric_figure


@pytest.fixture
def figure_of(scored):
    def make(values):
        evaluation = scored("m", values)
        return metric_figure(evaluation.summary["m"], distribution(evaluation.values("m")))

    return make


def roles(threshold):
    return [bar.role for bar in bars(distribution([0.5]), threshold)]


def test_bars_below_the_threshold_fail_and_those_from_it_on_pass():
    assert roles(0.8) == ["fail"] * 8 + ["pass"] * 2


def test_a_bar_with_the_threshold_inside_is_neither():
    assert roles(0.25) == ["fail"] * 2 + ["bar"] + ["pass"] * 7


def test_without_a_threshold_bars_have_no_side():
    assert roles(None) == ["bar"] * 10


def test_a_figure_holds_counts_and_quartiles_and_no_scores(figure_of):
    histogram, box = figure_of([0.05, 0.15, 0.15, 0.95] * 500)["data"]

    assert histogram["y"] == [500, 1000, 0, 0, 0, 0, 0, 0, 0, 500]
    assert (box["q1"][0], box["median"][0], box["q3"][0]) == (pytest.approx(0.125), 0.15, pytest.approx(0.35))


def test_the_threshold_is_a_line_through_both_plots(figure_of):
    layout = figure_of([0.4])["layout"]

    (line,) = layout["shapes"]
    assert (line["x0"], line["x1"], line["y0"], line["y1"]) == (0.5, 0.5, 0, 1)
    assert layout["annotations"][0]["text"] == "passes from 0.50"


def test_a_metric_without_a_threshold_has_no_line(figure_of):
    assert "shapes" not in figure_of([Score(value=0.4)])["layout"]


def test_plotly_knows_every_property(figure_of):
    figure = figure_of([0.1, 0.4, 1.0])
    for colours in (figure["data"][0]["marker"], figure["data"][1]["line"], figure["layout"]["shapes"][0]["line"]):
        colours["color"] = "black"  # the page's script puts a colour in the place of each role
    figure["data"][1]["fillcolor"] = figure["layout"]["annotations"][0]["font"]["color"] = "white"

    plotly.graph_objects.Figure(figure)  # raises for what it does not know
