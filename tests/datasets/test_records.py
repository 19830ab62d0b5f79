"""Rows as records."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ragspan.datasets import records
from ragspan.datasets.journal import digest_of
from ragspan.datasets.records import RecordReader
from ragspan.datasets.results import BadRow
from ragspan.datasets.tables import table_of
from ragspan.exceptions import TableError
from ragspan.records import RagRecord

SPAN = {"trace_id": "1" * 32, "span_id": "2" * 16}


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


def test_records_are_taken_as_they_are(rows):
    record = RagRecord(question="q", contexts=None, response="r")
    entries, _ = read(record, rows[0])

    assert entries[0].record is record
    assert entries[1].record.record_id == "a"


def test_a_cell_that_no_record_can_hold_makes_a_bad_row(rows):
    entries, _ = read({**rows[0], "answer": ["r"]}, {**rows[1], "contexts": [None]})

    assert [entry.reason for entry in entries] == [
        "the response is a list, but should be text",
        "the contexts hold nothing in place 1, but should hold a text there",
    ]


def test_a_function_that_raises_makes_a_bad_row_and_quotes_nothing(rows):
    (entry,), _ = read(rows[0], answer=lambda row: {}[row["question"]])

    assert entry == BadRow(row=1, reason="the function for the answer raised KeyError")


def test_a_missing_column_is_known_before_the_first_row_is_read(rows):
    with pytest.raises(TableError, match="no column 'output'"):
        read(rows[0], answer="output")


def test_a_row_belongs_to_the_span_that_it_names_only_where_that_is_asked_for(rows):
    row = {**rows[0], **SPAN, "started": "2020-01-01T12:00:00Z", "ended": "2020-01-01T12:00:01Z"}
    (with_span,), reader = read(row, with_spans=True)
    (without,), _ = read(row)

    assert (with_span.record.parent.trace_id, with_span.record.parent.span_id) == (int("1" * 32, 16), int("2" * 16, 16))
    assert with_span.record.ended_ns - with_span.record.started_ns == 1_000_000_000
    assert (without.record.parent, reader.traced) == (None, 1)


def test_an_end_without_a_start_is_both(rows):
    (entry,), _ = read({**rows[0], **SPAN, "ended": 5}, with_spans=True)

    assert (entry.record.started_ns, entry.record.ended_ns) == (5, 5)


def test_ids_that_name_no_span_are_told_and_the_row_is_scored_all_the_same(rows):
    (bad_id, none), reader = read(
        {**rows[0], **SPAN, "span_id": "x"}, {**rows[1], "trace_id": None, "span_id": None}, with_spans=True
    )

    assert (bad_id.record.parent, none.record.parent) == (None, None)
    assert reader.span_troubles == {1: "has a span id that is not 16 hexadecimal digits, or zero"}
    assert (reader.span_trouble_count, reader.traced) == (1, 0)


def test_a_time_that_is_none_makes_a_bad_row(rows):
    (entry,), _ = read({**rows[0], **SPAN, "started": "yesterday"}, with_spans=True)

    assert entry.reason == "the column started is no time: give ISO 8601 text or Unix nanoseconds"


def test_the_digest_is_of_what_is_judged_and_of_nothing_else():
    record = RagRecord(question="q", contexts=["ab", "c"], response="r")
    same = RagRecord(question="q", contexts=["ab", "c"], response="r", record_id="other")
    others = [{"question": None}, {"response": "q"}, {"contexts": None}, {"contexts": ()}, {"contexts": ("a", "bc")}]

    assert digest_of(record) == digest_of(same)
    digests = {digest_of(replace(record, **changes)) for changes in others}
    assert len(digests - {digest_of(record)}) == len(others)


def test_a_cell_has_a_limit_and_the_row_is_told_with_the_column(monkeypatch, rows):
    monkeypatch.setattr(records, "MAX_CELL", 50)
    rows[1]["answer"] = "x" * 60
    rows[2]["contexts"] = ["x" * 30] * 2
    rows[3]["not_read"] = "x" * 60
    entries, _ = read(*rows)

    assert [str(entry) for entry in entries if isinstance(entry, BadRow)] == [
        "row 2: the column answer has 60 characters, which are more than 50",
        "row 3: the column contexts has 60 characters, which are more than 50",
    ]


@pytest.mark.parametrize("part", ["id", "question", "contexts", "answer", "metadata", "trace_id", "span_id", "started"])
def test_a_number_of_thousands_of_digits_in_any_cell_is_at_most_a_bad_row(part, rows):
    entries, _ = read({**rows[0], **SPAN, part: 10**5000}, rows[1], with_spans=True)

    assert [entry.row for entry in entries] == [1, 2]
    assert not isinstance(entries[1], BadRow)


def test_what_a_record_wrote_of_itself_is_read_whole():
    record = RagRecord(question="q", contexts=["one"], response="r", status="aborted", tags=("beta",))
    (entry,), reader = read(json.loads(record.to_json()))

    assert entry.record == record
    assert reader.told == "reading records as RagRecord.to_json writes them"


def test_a_record_with_a_wrong_field_is_a_bad_row_that_quotes_nothing():
    plain = json.loads(RagRecord(question="q", contexts=[], response="r").to_json()) | {"status": "secret"}
    (entry,), _ = read(plain)

    assert isinstance(entry, BadRow)
    assert "status" in entry.reason
    assert "secret" not in entry.reason


def test_contexts_in_a_csv_file_of_deepeval_stand_between_bars():
    (entry,), _ = read({"input": "q", "actual_output": "r", "retrieval_context": "one|two"})

    assert [context.text for context in entry.record.contexts] == ["one", "two"]


def test_texts_that_trulens_exports_lose_their_quotes():
    (entry,), _ = read({"record_id": "a", "input": '"Who said \\"no\\"?"', "output": '"She did."', "contexts": ["c"]})

    assert (entry.record.record_id, entry.record.question, entry.record.response) == ("a", 'Who said "no"?', "She did.")
