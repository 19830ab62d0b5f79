"""What is written, as a Phoenix gets it."""

from __future__ import annotations

import pytest

from ragspan.outcomes import Score


@pytest.mark.parametrize(
    ("score", "kind", "result"),
    [
        (
            Score(value=0.5, threshold=0.8, explanation="why", judge="gpt-4o-mini"),
            "LLM",
            {"score": 0.5, "label": "fail", "explanation": "why"},
        ),
        (Score(value=1.0), "CODE", {"score": 1.0}),
    ],
    ids=["all", "nothing but the value"],
)
def test_a_score_is_an_annotation_of_the_answers_span(phoenix, deliver, make_scored, score, kind, result):
    deliver(make_scored({"faithfulness": score}), explanations=True)

    (row,) = phoenix.rows
    assert row.pop("metadata")["record_id"] == "record-1"
    assert row == {
        "span_id": "00000000000000b2",
        "name": "faithfulness",
        "annotator_kind": kind,
        "identifier": "ragspan:record-1",
        "result": result,
    }


def test_the_identifier_is_the_records_and_not_the_judges(phoenix, deliver, make_scored):
    """A second scoring by another judge replaces the first; two answers under one span do not replace each other."""
    for record, judge in (("record-1", "overlap"), ("record-1", "gpt-4o-mini"), ("record-2", "overlap")):
        deliver(make_scored({"faithfulness": Score(value=1.0, judge=judge)}, record_id=record))

    assert [row["identifier"] for row in phoenix.rows] == ["ragspan:record-1", "ragspan:record-2"]
