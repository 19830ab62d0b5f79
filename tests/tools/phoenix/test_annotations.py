"""What is written, as a Phoenix gets it."""

from __future__ import annotations

from ragspan.outcomes import Score


def test_the_identifier_is_the_records_and_not_the_judges(phoenix, deliver, make_scored):
    """A second scoring by another judge replaces the first; two answers under one span do not replace each other."""
    for record, judge in (("record-1", "overlap"), ("record-1", "gpt-4o-mini"), ("record-2", "overlap")):
        deliver(make_scored({"faithfulness": Score(value=1.0, judge=judge)}, record_id=record))

    assert [row["identifier"] for row in phoenix.rows] == ["ragspan:record-1", "ragspan:record-2"]
