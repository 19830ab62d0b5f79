"""What a mean should be at least."""

from __future__ import annotations

import pytest
from fakes import FakeJudge

from ragspan.evaluate import evaluate
from ragspan.evaluate.gates import Gate, check_gates
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


FEW = "only 1 of 3 rows have a score, and --min-scored is 50%"
SKIPPED = "1 row had to be skipped, because a cell is missing or the judge failed: say with --min-scored what share"


@pytest.mark.parametrize(
    ("kind", "minimum", "responses", "why_not"),
    [
        ("mean", 0.8, ["1", "0.5"], "has 0.75 over 2 scored rows"),
        ("mean", 0.75, ["1", "0.5"], None),
        ("passing", 0.5, ["1", "0"], None),
        ("passing", 0.6, ["1", "0"], "passes 1 of 2 (50.0%)"),
        ("none_below", 0.5, ["1", "0.4"], "the lowest is 0.4"),
        ("none_below", 0.4, ["1", "0.4"], None),
        ("mean", 0.5, ["1", "fails", "fails"], FEW),
        ("mean", 0.5, ["1", "fails"], f"{SKIPPED} of the rows is enough"),
        ("passing", 0.6, ["open 0.9", "1", "0"], "passes 1 of 2 (50.0%); 1 of 3 answers have no label"),
        ("passing", 0.0, ["open 0.9"], "none of 1 scores has a label: the judge cannot tell, or only ranks"),
        ("mean", 0.5, ["1", "declines", "declines"], None),
        ("mean", 0.5, ["declines", "fails"], None),
        ("mean", 0.5, ["declines", "fails", "fails"], "nothing was scored: InvalidVerdict 2, refusal 1"),
    ],
)
def test_a_gate_holds_or_says_why_not(kind, minimum, responses, why_not):
    gate = Gate(metric="graded", kind=kind, minimum=minimum)
    [result] = check_gates(graded(*responses), [gate])

    assert result.trouble == (why_not and f"{gate}, but {why_not}")
