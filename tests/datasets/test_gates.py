"""What a mean should be at least."""

from __future__ import annotations

import pytest

from ragspan.datasets.evaluation import parse_minimums, require_minimums, shortfalls
from ragspan.datasets.results import Evaluation, MetricSummary
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.testing import FakeJudge, assert_scores


def evaluation_of(**figures):
    return Evaluation(metrics=("m",), rows=4, summary={"m": MetricSummary(metric="m", **figures)})


def test_minimums_are_read_from_text():
    assert parse_minimums(["faithfulness=0.8", " completeness = .5"]) == {"faithfulness": 0.8, "completeness": 0.5}


@pytest.mark.parametrize("text", ["faithfulness", "faithfulness=", "=0.8", "faithfulness=high", ""])
def test_a_text_that_is_no_minimum_is_an_error(text):
    with pytest.raises(ConfigurationError, match=r"such as faithfulness=0\.8"):
        parse_minimums([text])


@pytest.mark.parametrize("minimum", [-0.1, 80, float("nan")])
def test_a_minimum_that_no_mean_can_have_is_an_error(minimum):
    with pytest.raises(ConfigurationError, match="a number from 0 to 1"):
        require_minimums({"faithfulness": minimum})


def test_a_minimum_for_a_metric_that_is_not_evaluated_is_an_error():
    with pytest.raises(ConfigurationError, match="no metric 'completeness' here; there are: faithfulness"):
        require_minimums({"completeness": 0.5}, ["faithfulness"])


def test_a_mean_that_just_reaches_its_minimum_is_enough():
    assert shortfalls(evaluation_of(mean=0.8, scored=4), {"m": 0.8}) == {}


def test_a_lower_mean_is_told_with_its_figures():
    below = shortfalls(evaluation_of(mean=0.79, scored=4), {"m": 0.8})

    assert below == {"m": "m should have a mean of at least 0.8, but has 0.79 over 4 scored rows"}


def test_nothing_scored_counts_as_below_even_a_minimum_of_nothing():
    below = shortfalls(evaluation_of(not_scored={"no_contexts": 3, "timeout": 1}), {"m": 0.0})

    assert below == {
        "m": "m should have a mean of at least 0, but nothing was scored: no_contexts 3, timeout 1",
    }


UNSUPPORTED = FakeJudge(supported=[False], explanations={"claim": "the passages say otherwise"})


def test_scores_that_are_high_enough_pass_in_silence(rows, judge, capsys):
    assert_scores(rows, judge=judge, faithfulness=0.8, context_adherence=1)

    assert capsys.readouterr() == ("", "")


def test_the_failure_tells_the_metric_its_mean_and_the_worst_records(rows):
    with pytest.raises(AssertionError) as failure:
        assert_scores(rows, judge=UNSUPPORTED, faithfulness=0.8)
    lines = str(failure.value).splitlines()

    assert lines[:4] == [
        "faithfulness should have a mean of at least 0.8, but has 0 over 2 scored rows",
        "  row 1 (a): 0.000",
        "    question: q1",
        "    response: r1",
    ]
    assert lines[4].startswith("    why: ")
    assert "  row 4 (d): 0.000" in lines


def test_nothing_scored_is_a_failure(rows, judge):
    with pytest.raises(AssertionError, match="nothing was scored: no_contexts 1"):
        assert_scores(rows[1:2], judge=judge, faithfulness=0)


async def test_it_works_inside_a_running_loop(rows, judge):
    assert_scores(rows, judge=judge, faithfulness=0.8)


def test_a_metric_that_does_not_exist_is_no_failure_of_the_scores(rows, judge):
    with pytest.raises(ConfigurationError, match="did you mean 'faithfulness'"):
        assert_scores(rows, judge=judge, faithful=0.8)


def test_a_record_that_cannot_be_read_is_an_error(rows, judge):
    rows[0]["answer"] = []

    with pytest.raises(TableError, match="1 records cannot be evaluated; the first is row 1"):
        assert_scores(rows, judge=judge, faithfulness=0.8)


def test_without_a_metric_there_is_nothing_to_assert(rows, judge):
    with pytest.raises(TypeError, match=r"such as faithfulness=0\.8"):
        assert_scores(rows, judge=judge)
