"""What a mean should be at least."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes import FakeJudge

from ragspan.evaluate import evaluate
from ragspan.evaluate.gates import Gate, check_gates, lowest
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.outcomes import MetricFailure, NotApplicable, Score
from ragspan.testing import assert_scores


def test_the_failure_tells_the_metric_its_mean_and_the_worst_records(rows):
    unsupported = FakeJudge(supported=[False], explanations={"claim": "the contexts say otherwise"})
    with pytest.raises(AssertionError) as failure:
        assert_scores(rows * 2, judge=unsupported, faithfulness=0.8)
    lines = str(failure.value).splitlines()

    assert lines[:5] == [
        "faithfulness should have a mean of at least 0.8, but has 0 over 4 scored rows",
        "scores below 0.8: 4 of 4; the lowest:",
        "row 1 (a)",
        "  question             q1",
        "  response             r1",
    ]
    assert lines[5].startswith("  faithfulness         0.00 fail  ")
    assert [line for line in lines if line.startswith("row ")] == ["row 1 (a)", "row 4 (d)", "row 5 (a)"]


@pytest.mark.parametrize(
    ("chosen", "answer", "minimums", "error", "message"),
    [
        (1, "r", {"faithfulness": 0}, AssertionError, "nothing was scored: no_contexts 1"),
        (0, "r", {"faithful": 0.8}, ConfigurationError, "did you mean 'faithfulness'"),
        (0, [], {"faithfulness": 0.8}, TableError, "1 record cannot be evaluated; the first is row 1"),
        (0, "r", {}, TypeError, r"such as faithfulness=0\.8"),
    ],
)
def test_what_cannot_pass_is_an_error_of_its_own_kind(rows, judge, chosen, answer, minimums, error, message):
    with pytest.raises(error, match=message):
        assert_scores([{**rows[chosen], "answer": answer}], judge=judge, **minimums)


# Shares, single scores, and how many have one ---------------------------------------------------------------------


class Graded:
    """Gives each response the score that it names."""

    name = "graded"

    async def score(self, record):
        if record.response == "declines":
            return NotApplicable(reason="refusal")
        if record.response == "fails":
            return MetricFailure(error_type="InvalidVerdict", message="no verdict")
        if record.response.startswith("open "):
            return Score(value=float(record.response.removeprefix("open ")))
        return Score(value=float(record.response), threshold=0.5, explanation=f"because of {record.response}")


def graded(*responses):
    rows = [{"question": "q", "contexts": ["c"], "answer": response} for response in responses]
    return evaluate(rows, [Graded()])


def test_scores_at_the_minimum_are_not_below_it():
    lines = list(lowest(graded("1", "0.5", "0.4", "0.4"), Gate(metric="graded", kind="none_below", minimum=0.5)))

    assert lines[0] == "scores below 0.5: 2 of 4; the lowest:"
    assert [line for line in lines if line.startswith("row ")] == ["row 3", "row 4", "row 2"]


GATES = json.loads(Path(__file__).with_name("gates.json").read_text("utf-8"))


@pytest.mark.parametrize(("kind", "minimum", "responses", "why_not"), GATES)
def test_a_gate_holds_or_says_why_not(kind, minimum, responses, why_not):
    gate = Gate(metric="graded", kind=kind, minimum=minimum)
    [result] = check_gates(graded(*responses), [gate])

    assert result.trouble == (why_not and f"{gate}, but {why_not}")
