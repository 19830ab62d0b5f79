"""Rows as records."""

from __future__ import annotations

import json

import pytest

from ragspan.evaluate.records import RecordReader
from ragspan.evaluate.rows import BadRow
from ragspan.evaluate.tables import table_of
from ragspan.records import RagRecord

RECORD = RagRecord(question="q", contexts=["ab", "c"], response="r", status="aborted", tags=("beta",))


def read(*rows, **choices):
    table = table_of(list(rows))
    reader = RecordReader(choices, table, by=["model"] if isinstance(rows[0], dict) and "model" in rows[0] else ())
    return [reader.read(entry) for entry in table.entries], reader


def test_a_row_becomes_a_record_with_all_that_it_has(rows):
    (entry,), _ = read({**rows[0], "model": "m", "metadata": '{"tenant": "t"}'})
    record = entry.record

    assert (entry.row, record.record_id, record.question, record.response) == (1, "a", "q1", "r1")
    assert [context.text for context in record.contexts] == ["one", "two"]
    assert record.metadata == {"model": "m", "tenant": "t"}


def test_rows_without_an_id_are_named_by_their_number(rows):
    del rows[0]["id"], rows[1]["id"]
    entries, _ = read(*rows[:2])

    assert [entry.record.record_id for entry in entries] == ["row-1", "row-2"]


def test_records_are_taken_as_they_are_and_as_they_write_themselves(rows):
    (as_it_is, row), _ = read(RECORD, rows[0])
    (as_json,), reader = read(json.loads(RECORD.to_json()))

    assert (as_it_is.record, row.record.record_id) == (RECORD, "a")
    assert as_json.record == RECORD
    assert reader.columns_read == "reading records as RagRecord.to_json writes them"


@pytest.mark.parametrize(
    ("changes", "choices", "reason"),
    [
        ({"answer": ["secret"]}, {}, "the response is a list, but should be text"),
        ({"contexts": [7]}, {}, "the contexts hold an int in place 1, but should hold a text there"),
        ({}, {"answer": lambda row: {}["secret"]}, "the response cannot be read: KeyError"),
    ],
)
def test_what_no_record_can_hold_makes_a_bad_row_that_quotes_nothing(rows, changes, choices, reason):
    (bad, good), _ = read({**rows[0], **changes}, rows[0], **choices)

    assert bad == BadRow(row=1, reason=reason)
    assert isinstance(good, BadRow) == bool(choices)
