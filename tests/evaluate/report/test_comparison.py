"""Two runs side by side."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from whole_records import WholeRecords, steady

from ragspan import NotApplicable, Score
from ragspan.evaluate.report import comparison

WHOLE = WholeRecords(Path(__file__).with_name("whole_comparisons.json"))


@pytest.fixture
def run_of(answered, evaluation_of):
    def run(values, *, ids=None, metric="faithfulness"):
        pairs = zip(values, ids or [None] * len(values), strict=True)
        return evaluation_of(
            answered(row, {metric: value}, record_id=record_id) for row, (value, record_id) in enumerate(pairs, start=1)
        )

    return run


@pytest.fixture
def compare(request):
    """Compares two runs; all that is said of them is in a file, too."""
    made = []

    def compared(run, baseline):
        made.append(comparison.compare(run, baseline))
        return made[-1]

    yield compared
    told = steady([[*map(str, one.metrics), json.loads(json.dumps(asdict(one)))] for one in made])
    known, found = WHOLE.told(f"{request.path.stem} {request.node.name} compared", told)
    assert found == known


@pytest.mark.parametrize(
    ("here", "before", "verdict"),
    [
        ([0.2, 0.9, 0.4], [0.2, 0.9, 0.4], "no clear difference"),
        ([0.6, 0.7, 0.9], [0.5, 0.5, 0.5], "better"),
        ([0.4, 0.1, 0.3], [0.5, 0.9, 0.8], "worse"),
    ],
)
def test_a_difference_is_clear_where_its_interval_leaves_zero_out(compare, run_of, here, before, verdict):
    (change,) = compare(run_of(here), run_of(before)).metrics

    assert (change.verdict, change.pairs) == (verdict, 3)


def test_the_largest_changes_are_kept_and_those_whose_label_changes_come_first(compare, run_of):
    compared = compare(run_of([0.5, 0.0, 0.4, 0.9]), run_of([1.0, 0.4, 0.5, 0.1]))
    many = compare(run_of([0.0] * 50), run_of([place / 50 for place in range(50)])).metrics[0].falls
    (change,) = compared.metrics

    assert [fall.row for fall in change.falls] == [3, 1, 2]
    assert (len(many), many[0].before) == (20, 0.98)


def test_answers_with_a_label_in_one_run_only_are_counted(compare, run_of):
    none, open_one = NotApplicable(reason="no_response"), Score(value=0.5)
    (change,) = compare(run_of([0.1, 0.1, 0.1, none]), run_of([0.9, none, open_one, none])).metrics

    assert (change.pairs, change.newly_failing, change.labelled_once) == (2, 1, 2)
    assert "1 newly fail, 0 newly pass; 2 have a label in one run only" in str(change)


def test_without_ids_in_common_rows_are_paired_by_number(compare, run_of):
    compared = compare(run_of([0.9, 0.2, 0.1]), run_of([0.8, 0.2], ids=["x", "y"]))

    assert compared.pairing.startswith(
        "2 answers are in both runs, paired by row number and question; left out: 1 only in"
    )


def test_answers_of_other_tables_are_not_paired(compare, answered, evaluation_of, run_of):
    compared = compare(run_of([0.9]), evaluation_of([answered(1, {"faithfulness": 0.1}, question="Who?")]))

    assert compared.metrics[0].verdict == "nothing to compare"
    assert compared.pairing.endswith("the same row number and question; a column id in both tables pairs them")


def test_different_judges_are_a_caution_and_get_no_verdict(compare, run_of):
    run, baseline = (run_of([Score(value=0.5, judge="gpt", prompt_version=version)]) for version in "21")
    (caution,) = compare(run, baseline).cautions
    assert compare(run, baseline).metrics[0].verdict == "judged differently"

    assert caution.startswith("faithfulness was judged by gpt (prompts 2) here and by gpt (prompts 1) in the baseline")
    assert compare(run, run).cautions == ()
