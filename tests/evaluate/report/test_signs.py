"""Signs of high risk, distributions, and the documentation's words about metrics."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ragspan import MetricFailure, NotApplicable
from ragspan.evaluate.report.risk_signs import REASONS, distribution, signs_of
from ragspan.metrics.metric_catalogue import BUILT_IN, guide_of

ABSENT = NotApplicable(reason="no_contexts")
FAILURE = MetricFailure(error_type="no_claims", message="")
LOW = guide_of("faithfulness").when_low
GAPS = "Many answers have no score"
OTHERS = "the figures describe the other answers only."
WHY_ABSENT = f"{OTHERS} Most often {REASONS['no_contexts']}."


@pytest.fixture
def signs_for(answered, evaluation_of):
    def signs(outcomes, metric="faithfulness"):
        rows = [answered(row, {metric: outcome}) for row, outcome in enumerate(outcomes, start=1)]
        return signs_of(evaluation_of(rows).summary[metric])

    return signs


@pytest.mark.parametrize(
    ("outcomes", "level", "title", "figures", "advice"),
    [
        (
            [0.4, 0.45, 0.55, 0.45] * 10,
            "high",
            "Most answers fail",
            "The mean is 0.46 and the median is 0.45; a pass",
            LOW,
        ),
        ([0.45] * 22 + [0.5] * 18, "notice", "Low mean and median", "The mean is 0.47 and the median", LOW),
        ([0.9] * 40 + [ABSENT] * 20, "high", GAPS, "20 of 60 answers have no score (33%): no_contexts 20.", WHY_ABSENT),
        (
            [0.9] * 40 + [FAILURE],
            "high",
            "The metric failed on many answers",
            "1 of 41",
            f"{OTHERS} A failure is a fault",
        ),
    ],
)
def test_what_deserves_a_look_has_a_sign_with_its_figures_and_what_to_look_at(
    signs_for, outcomes, level, title, figures, advice
):
    (sign,) = signs_for(outcomes)

    assert (sign.level, sign.title) == (level, title)
    assert sign.figures.startswith(figures)
    assert sign.advice.startswith(advice)


@pytest.mark.parametrize(
    "outcomes",
    [[0.7, 0.75, 0.8, 0.85, 0.9] * 10, [0.0] * 6 + [1.0] * 34],
)
def test_good_scores_give_no_sign(signs_for, outcomes):
    assert signs_for(outcomes) == []


def test_few_scores_are_told_after_the_signs_of_high_risk(signs_for):
    found = signs_for([0.1, 0.2, 0.2])

    assert [sign.level for sign in found] == ["high", "notice"]
    assert found[1].figures.startswith("Only 3 answers have a score")


# Distributions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("threshold", "roles"),
    [(0.8, ["fail"] * 8 + ["pass"] * 2), (None, ["bar"] * 10)],
)
def test_bars_below_the_threshold_fail_and_those_from_it_on_pass(threshold, roles):
    assert [bar.role for bar in distribution([0.5], threshold).bars] == roles


# The documentation ----------------------------------------------------------------------------------------------------

TEXT = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")


def plain(text):
    return " ".join(text.replace("`", "").split())


@pytest.mark.parametrize("metric", BUILT_IN)
def test_a_guide_says_what_the_documentation_says(metric):
    section = next(part for part in TEXT.split("\n## ") if part.partition("\n\n")[2].startswith(f"`{metric}`"))
    (advice,) = re.findall(r"- When it is low: (.*?)(?=\n- |\n\n|\Z)", section, re.DOTALL)
    (question,) = re.findall(rf"^\| `{metric}` \| (.*?) \|", TEXT, re.MULTILINE)

    assert guide_of(metric) == (plain(question), plain(advice))


def test_every_reason_means_what_the_documentation_says():
    table = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|$", TEXT.partition("## When there is no score")[2], re.MULTILINE))

    assert {reason: plain(meaning) for reason, meaning in table.items()} == REASONS
