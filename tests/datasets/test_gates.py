"""What a mean should be at least."""

from __future__ import annotations

import pytest

from ragspan.datasets.gates import require_minimums
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.testing import FakeJudge, assert_scores


@pytest.mark.parametrize(
    ("minimums", "message"),
    [
        *[({"faithfulness": minimum}, "a number from 0 to 1") for minimum in (-0.1, 80, float("nan"))],
        ({"completeness": 0.5}, "no metric 'completeness' here; there are: faithfulness"),
    ],
)
def test_a_minimum_that_no_mean_of_the_run_can_reach_is_an_error(minimums, message):
    with pytest.raises(ConfigurationError, match=message):
        require_minimums(minimums, ["faithfulness"])


def test_scores_that_are_high_enough_pass_in_silence(rows, judge, capsys):
    assert_scores(rows, judge=judge, faithfulness=0.8, context_adherence=1)

    assert capsys.readouterr() == ("", "")


async def test_it_works_inside_a_running_loop(rows, judge):
    assert_scores(rows, judge=judge, faithfulness=0.8)


def test_the_failure_tells_the_metric_its_mean_and_the_worst_records(rows):
    unsupported = FakeJudge(supported=[False], explanations={"claim": "the contexts say otherwise"})
    with pytest.raises(AssertionError) as failure:
        assert_scores(rows, judge=unsupported, faithfulness=0.8)
    lines = str(failure.value).splitlines()

    assert lines[:4] == [
        "faithfulness should have a mean of at least 0.8, but has 0 over 2 scored rows",
        "row 1 (a)",
        "  question             q1",
        "  response             r1",
    ]
    assert lines[4].startswith("  faithfulness         0.00 fail  ")
    assert "row 4 (d)" in lines


@pytest.mark.parametrize(
    ("chosen", "answer", "minimums", "error", "message"),
    [
        (1, "r", {"faithfulness": 0}, AssertionError, "nothing was scored: no_contexts 1"),
        (0, "r", {"faithful": 0.8}, ConfigurationError, "did you mean 'faithfulness'"),
        (0, [], {"faithfulness": 0.8}, TableError, "1 records cannot be evaluated; the first is row 1"),
        (0, "r", {}, TypeError, r"such as faithfulness=0\.8"),
    ],
)
def test_what_cannot_pass_is_an_error_of_its_own_kind(rows, judge, chosen, answer, minimums, error, message):
    with pytest.raises(error, match=message):
        assert_scores([{**rows[chosen], "answer": answer}], judge=judge, **minimums)
