"""What is written, as a Phoenix gets it."""

from __future__ import annotations

import pytest

from ragspan.outcomes import Score
from ragspan.tools.phoenix import PhoenixEmitter


@pytest.fixture
def rows_of():
    def rows(scored, **options):
        emitter = PhoenixEmitter(base_url="http://localhost", **{"explanations": True, **options})
        return [emitter.row_of(item) for item in emitter.items_of(scored, scored.span)]

    return rows


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
def test_a_score_is_an_annotation_of_the_answers_span(rows_of, make_scored, score, kind, result):
    scored = make_scored({"faithfulness": score})
    (item,) = PhoenixEmitter(base_url="http://localhost").items_of(scored, scored.span)

    assert rows_of(scored) == [
        {
            "span_id": "00000000000000b2",
            "name": "faithfulness",
            "annotator_kind": kind,
            "identifier": "ragspan:record-1",
            "result": result,
            "metadata": item.metadata,
        }
    ]


def test_the_identifier_is_the_records_and_not_the_judges(rows_of, make_scored):
    """A second scoring by another judge replaces the first; two answers under one span do not replace each other."""
    outcomes = [{"faithfulness": Score(value=1.0, judge=judge)} for judge in ("overlap", "gpt-4o-mini")]
    identifiers = [rows_of(make_scored(each), identifier="mine")[0]["identifier"] for each in outcomes]
    (other,) = rows_of(make_scored(record_id="record-2"))

    assert identifiers == ["mine:record-1"] * 2
    assert other["identifier"] == "ragspan:record-2"
