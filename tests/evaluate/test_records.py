"""Rows as records."""

from __future__ import annotations

import json

import pytest

from ragspan.evaluate import records
from ragspan.evaluate.opening import table_of
from ragspan.evaluate.records import RecordReader
from ragspan.evaluate.rows import BadRow
from ragspan.records import RagRecord

SPAN = {"trace_id": "1" * 32, "span_id": "2" * 16}
RECORD = RagRecord(question="q", contexts=["ab", "c"], response="r", status="aborted", tags=("beta",))


def read(*rows, with_spans=False, **choices):
    table = table_of(list(rows))
    reader = RecordReader(choices, table, with_spans=with_spans)
    return [reader.read(entry) for entry in table.entries], reader


def test_a_row_becomes_a_record_with_all_that_it_has(rows):
    more = {"session_id": "s", "user_id": 7, "metadata": {"model": "m"}}
    (entry,), _ = read({**rows[0], **more})
    record = entry.record

    assert (entry.row, record.record_id, record.question, record.response) == (1, "a", "q1", "r1")
    assert [context.text for context in record.contexts] == ["one", "two"]
    assert (record.session_id, record.user_id, record.metadata) == ("s", "7", {"model": "m"})


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
        ({"started": "secret"}, {}, "the start is not a time: give ISO 8601 text or Unix nanoseconds"),
        ({"answer": "x" * 60}, {}, "the column answer has 60 characters, which are more than 50"),
        ({"contexts": ["x" * 30] * 2}, {}, "the column contexts has 60 characters, which are more than 50"),
    ],
)
def test_what_no_record_can_hold_makes_a_bad_row_that_quotes_nothing(monkeypatch, rows, changes, choices, reason):
    monkeypatch.setattr(records, "MAX_CELL", 50)
    (bad, good), _ = read({**rows[0], **changes}, {**rows[0], "not_read": "x" * 60}, with_spans=True, **choices)

    assert bad == BadRow(row=1, reason=reason)
    assert isinstance(good, BadRow) == bool(choices)


def test_a_row_belongs_to_the_span_that_it_names_only_where_that_is_asked_for(rows):
    row = {**rows[0], **SPAN, "started": "2020-01-01T12:00:00Z", "ended": "2020-01-01T12:00:01Z"}
    (with_span, only_ended), reader = read(row, {**row, "started": None}, with_spans=True)
    (without,), _ = read(row)

    assert (with_span.record.parent.trace_id, with_span.record.parent.span_id) == (int("1" * 32, 16), int("2" * 16, 16))
    assert with_span.record.ended_ns - with_span.record.started_ns == 1_000_000_000
    assert only_ended.record.started_ns == only_ended.record.ended_ns == with_span.record.ended_ns
    assert (without.record.parent, reader.traced) == (None, 2)


@pytest.mark.parametrize(
    ("row", "question", "contexts", "response"),
    [
        ({"input": "q", "actual_output": "r", "retrieval_context": "one|two"}, "q", ["one", "two"], "r"),  # DeepEval
        ({"input": '"a \\"b\\""', "output": '"r"', "contexts": ["c"]}, 'a "b"', ["c"], "r"),  # TruLens
    ],
)
def test_what_tools_do_to_texts_when_they_export_them_is_undone(row, question, contexts, response):
    (entry,), _ = read(row)

    assert (entry.record.question, entry.record.response) == (question, response)
    assert [context.text for context in entry.record.contexts] == contexts
