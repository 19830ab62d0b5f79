"""Signs of risk: what they say, and where they keep silent."""

from __future__ import annotations

import pytest

from ragspan import NotApplicable, Score
from ragspan.evaluate.report import signs_of
from ragspan.outcomes import Cause, MetricFailure

ABSENT, FAILED = NotApplicable(reason="no_contexts"), MetricFailure(error_type="timeout", message="too slow")


@pytest.fixture
def signs(answered, evaluation_of):
    def of(*outcomes):
        rows = [answered(row, {"a": outcome}) for row, outcome in enumerate(outcomes, start=1)]
        return {sign.title: sign for sign in signs_of(evaluation_of(rows))}

    return of


@pytest.mark.parametrize(
    ("outcomes", "title", "level", "figures"),
    [
        ([0.1] * 30 + [0.9] * 10, "most answers fail", "high", "The median is 0.10; a pass begins at 0.50."),
        ([0.45] * 20 + [0.55] * 20, "low median", None, None),
        ([0.45] * 30 + [0.52] * 20, "low median", "notice", "The median is 0.45"),
        ([0.9] * 80 + [ABSENT] * 20, "many answers have no score", "high", "20 of 100 answers have no score (20%)"),
        ([0.9] * 90 + [ABSENT] * 10, "many answers have no score", None, None),
        ([NotApplicable(reason="no_citations")] * 40, "many answers have no score", None, None),
        ([0.9] * 98 + [FAILED] * 2, "many answers have no score", "high", "timeout 2"),
        ([0.1] + [0.9] * 39, "Begin with a", "notice", "1 of 40 answers fail it (2%)."),
        ([0.1] + [0.9] * 4, "Begin with a", "high", "1 of 5 answers fail it (20%)."),
        ([0.375] * 30 + [0.52] * 20, "low median", "notice", "The median is 0.38"),
        ([0.36] * 30 + [0.52] * 20, "low median", "high", "The median is 0.36"),
        ([0.496] * 30 + [0.52] * 20, "low median", None, None),  # rounded it is the threshold
    ],
)
def test_a_sign_has_a_level_and_the_figures_behind_it(signs, outcomes, title, level, figures):
    found = signs(*outcomes).get(title)

    assert (found and found.level) == level
    assert found is None or figures in found.figures


def test_metrics_with_the_same_figures_share_a_sign_and_the_gravest_come_first(answered, evaluation_of):
    rows = [answered(row, {"a": 0.1, "b": 0.1}) for row in range(1, 40)]
    found = signs_of(evaluation_of(rows))

    assert [sign.metrics for sign in found if sign.title == "most answers fail"] == [("a", "b")]
    assert [sign.level for sign in found] == sorted((sign.level for sign in found), reverse=False)


def test_a_cause_behind_a_fifth_of_the_failing_answers_is_a_sign(signs):
    def failing(cause):
        return Score(value=0.1, threshold=0.5, causes=(Cause(claim="c", kind=cause),))

    kinds = ["lost_before_prompt", "cut", *["unsupported"] * 8]
    sign = signs(*map(failing, kinds), 0.9)["documents that were found did not reach the model"]
    assert sign.figures == "Of 10 failing answers: lost before prompt 1, cut 1."
    assert "documents that were found did not reach the model" not in signs(*map(failing, kinds[1:]))


@pytest.mark.parametrize(
    ("size", "failing", "elsewhere", "said"),
    [
        (10, 8, 0, ("high", "8 of its 10 answers fail a (80%), of all answers 27%.")),
        (47, 8, 8, ("high", "8 of its 47 answers fail a (17%), of all answers 9%.")),
        (9, 8, 0, None),
        (10, 2, 2, None),
    ],
)
def test_the_worst_group_is_named_where_ten_answers_have_a_label_and_it_is_no_chance(
    answered, evaluation_of, size, failing, elsewhere, said
):
    count = 188 if size > 10 else 30
    bad = {*range(1, failing + 1), *range(size + 1, size + elsewhere + 1)}
    rows = [answered(row, {"a": 0.1 if row in bad else 0.9}) for row in range(1, count + 1)]
    for row in rows:
        row.record.metadata["source"] = "wiki" if row.row <= size else "blog"
    found = {sign.title: (sign.level, sign.figures) for sign in signs_of(evaluation_of(rows, by=("source",)))}

    assert found.get("The worst group: source wiki") == said
