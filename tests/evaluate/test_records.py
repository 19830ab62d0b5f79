"""Rows as records, and where their parts are."""

from __future__ import annotations

import json
from itertools import count
from operator import itemgetter

import pytest

from ragspan.evaluate import evaluate
from ragspan.evaluate.records import RecordReader
from ragspan.evaluate.rows import BadRow
from ragspan.evaluate.tables import table_of
from ragspan.exceptions import TableError
from ragspan.judges import OverlapJudge
from ragspan.metrics import Faithfulness
from ragspan.records import RagRecord

RECORD = RagRecord(question="q", contexts=["ab", "c"], response="r", status="aborted", tags=("beta",))
NESTED = {"question": "q", "prediction": {"contexts": ["a"], "deep": {"answer": "r"}}, "prediction.answer": "literal"}
PLAIN = {"question": "q", "contexts": "c", "answer": "r"}
TWO_ANSWERS = {"question": "q", "contexts": ["c"], "answer": "a", "response": "r"}


def read(*rows, by=(), **choices):
    table = table_of(list(rows))
    reader = RecordReader(choices, table, by=by)
    return list(map(reader.read, count(1), table.rows)), reader


def parts_of(row, **choices):
    ((found,), _) = read(row, **choices)
    contexts = [context.text for context in found.record.contexts]
    return found.record.question, contexts, found.record.response


@pytest.mark.parametrize(
    ("row", "choices", "expected"),
    [
        (
            NESTED,
            {"contexts": "prediction.contexts", "answer": lambda row: row["question"].upper()},
            ("q", ["a"], "Q"),
        ),
        (NESTED, {"contexts": "question", "answer": "prediction.answer"}, ("q", ["q"], "literal")),
        (
            {"question": "q", "prediction": '{"deep": {"answer": "r"}}'},
            {"contexts": "question", "answer": "prediction.deep.answer"},
            ("q", ["q"], "r"),
        ),
        (TWO_ANSWERS, {"answer": "response"}, ("q", ["c"], "r")),
        (TWO_ANSWERS, {}, ("q", ["c"], "a")),
    ],
    ids=["name, path, function", "a column called like a path", "JSON text", "before known names", "the first name"],
)
def test_parts_are_read_by_name_path_and_function(row, choices, expected):
    assert parts_of(row, **choices) == expected


@pytest.mark.parametrize(
    ("row", "choices", "message"),
    [
        (PLAIN, {"answer": "anwser"}, "answer; there are: 'question', 'contexts', 'answer'; did you mean 'answer'"),
        (PLAIN, {"answer": "output"}, "name the right one with --answer-column"),
        (
            {"frage": "", "fund": "", "antwort": ""},
            {},
            r"like the question \(.*\); .* the contexts \(.*\); .* the answer .*--question-column, .*--contexts-.*--answer-column$",
        ),
    ],
)
def test_a_column_that_is_missing_is_an_error_that_names_what_there_is(row, choices, message):
    with pytest.raises(TableError, match=message):
        read(row, **choices)


def test_contexts_may_be_in_several_columns():
    rows = [{"question": "q", "one": "a", "two": '["b", "c"]', "answer": "r"}, {"question": "q", "answer": "r"}]
    (first, second), reader = read(*rows, contexts=["one", "two"], answer=itemgetter("answer"))

    assert [context.text for context in first.record.contexts] == ["a", "b", "c"]
    assert second.record.contexts is None
    assert reader.columns_read == (
        "reading question from 'question', contexts from 'one and two', answer from 'a function'"
    )


@pytest.mark.parametrize(
    "row",
    [
        {"user_input": "q", "retrieved_contexts": ["c"], "response": "r", "reference": "x", "reference_contexts": []},
        {"question": "q", "contexts": ["c"], "answer": "r", "ground_truth": "x"},  # Ragas before 0.2
        {"input": "q", "actual_output": "r", "expected_output": "x", "retrieval_context": ["c"], "context": ["y"]},
        {"input": "q", "actualOutput": "r", "expectedOutput": "y", "retrievalContext": ["c"], "context": None},
        {"app_id": 1, "record_id": "a", "input": "q", "output": "r", "contexts": ["c"]},  # TruLens
        {"inputs.question": "q", "outputs.answer": "r", "outputs.contexts": ["c"], "reference.answer": "x"},
        {"inputs": '{"question": "q"}', "outputs": '{"answer": "r", "contexts": ["c"]}', "error": ""},  # LangSmith
        *({name: "q", "contexts": "c", "answer": "r"} for name in ("query", "user_question", "user_query", "user_msg")),
        *({name: "q", "context": "c", "answer": "r"} for name in ("user_message", "query_str", "q", "prompt")),
        *({"question": "q", name: "c", "answer": "r"} for name in ("documents", "source_documents")),
    ],
)
def test_the_names_of_other_tools_are_recognized_and_told_in_a_line(row):
    assert parts_of(row) == ("q", ["c"], "r")
    assert read(row)[1].columns_read.startswith("reading question from '")


def test_a_row_becomes_a_record_with_all_that_it_has(rows):
    (entry,), _ = read({**rows[0], "model": "m", "metadata": '{"tenant": "t"}'}, by=["model"])
    record = entry.record

    assert (entry.row, record.record_id, record.question, record.response) == (1, "a", "q1", "r1")
    assert [context.text for context in record.contexts] == ["one", "two"]
    assert record.metadata == {"model": "m", "tenant": "t"}


def test_records_are_taken_as_they_are_and_as_json_by_their_names(rows):
    (as_it_is, row), _ = read(RECORD, rows[0])
    ((as_json,), _) = read(json.loads(RECORD.to_json()))

    assert (as_it_is.record, row.record.record_id) == (RECORD, "a")
    for name in ("id", "record_id", "example_id"):
        assert read({**PLAIN, name: "x"})[0][0].record.record_id == "x"
    for name in ("record_id", "question", "contexts", "response"):
        assert getattr(as_json.record, name) == getattr(RECORD, name)


@pytest.mark.parametrize(
    ("changes", "choices", "reason"),
    [
        ({"answer": ["secret"]}, {}, "the answer is a list, but should be text"),
        ({}, {"answer": lambda row: {}["secret"]}, "the answer cannot be read: KeyError"),
    ],
)
def test_what_no_record_can_hold_makes_a_bad_row_that_quotes_nothing(rows, changes, choices, reason):
    (bad, good), _ = read({**rows[0], **changes}, rows[0], **choices)

    assert bad == BadRow(row=1, reason=reason)
    assert isinstance(good, BadRow) == bool(choices)


def test_a_column_of_retrieved_documents_gives_causes_as_well(monkeypatch):
    monkeypatch.setenv("RAGSPAN_JUDGING", "thread")
    fee, settled = "The annual fee of the silver card is 49 euros, payable in March.", "Beta settles payments at night."
    row = {"question": "What is the fee?", "contexts": [settled], "retrieved": [settled, fee], "answer": fee}
    evaluation = evaluate([row], metrics=[Faithfulness(OverlapJudge())])

    assert evaluation.summary["faithfulness"].causes == {"lost_before_prompt": 1}
    (worst,) = evaluation.all_rows()
    assert worst.outcomes["faithfulness"].losses == (
        "Document 2 of search, which did not reach the prompt, supports a claim that the contexts do not."
    )
