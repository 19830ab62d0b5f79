"""Where the parts of a record are."""

from __future__ import annotations

import pytest

from ragspan.evaluate.columns import column_choices, paths_of, reader_of, with_recognized
from ragspan.evaluate.records import RecordReader
from ragspan.evaluate.tables import table_of
from ragspan.exceptions import TableError

NESTED = {"question": "q", "prediction": {"contexts": ["a"], "deep": {"answer": "r"}}, "prediction.answer": "literal"}
PLAIN_CONTEXTS = {"contexts": "c", "answer": "r"}
PLAIN = {"question": "q", **PLAIN_CONTEXTS}
TWO_ANSWERS = {"question": "q", "contexts": ["c"], "answer": "a", "response": "r"}


def reads(row, **choices):
    paths = paths_of(list(row), [row])
    return {part: reader_of(part, choice, paths)(row) for part, choice in with_recognized(choices, paths).items()}


@pytest.mark.parametrize(
    ("row", "choices", "expected"),
    [
        (
            NESTED,
            {"contexts": "prediction.contexts", "answer": lambda row: row["question"].upper()},
            {"question": "q", "contexts": ["a"], "answer": "Q"},
        ),
        (NESTED, {"contexts": "question", "answer": "prediction.answer"}, {"answer": "literal"}),
        (
            {"question": "q", "prediction": '{"deep": {"answer": "r"}}'},
            {"contexts": "question", "answer": "prediction.deep.answer"},
            {"answer": "r"},
        ),
        ({**PLAIN, "id": 1, "metadata": {}}, {}, {**PLAIN, "id": 1, "metadata": {}}),
        (TWO_ANSWERS, {"answer": "response"}, {"answer": "r"}),
    ],
    ids=["name, path, function", "a column called like a path", "JSON text", "optional parts", "before known names"],
)
def test_parts_are_read_by_name_path_and_function(row, choices, expected):
    read = reads(row, **choices)

    assert {part: read[part] for part in expected} == expected


@pytest.mark.parametrize(
    ("row", "choices", "message"),
    [
        (
            PLAIN,
            {"answer": "anwser"},
            "response; there are: 'question', 'contexts', 'answer'; did you mean 'answer'",
        ),
        (PLAIN, {"answer": "output"}, "name the right one with answer_column= or --answer-column"),
        (
            TWO_ANSWERS,
            {},
            r"several columns may be the response: 'answer', 'response'; there are: .*; name the right one with answer",
        ),
        (
            {"frage": "", "fund": "", "antwort": ""},
            {},
            r"like the question \(.*\); .* the contexts \(.*\); .* the response .*--question-column, .*--contexts-.*--answer-column; contexts in several columns: give it once for each$",
        ),
    ],
)
def test_a_column_that_is_missing_or_not_clear_is_an_error_that_names_what_there_is(row, choices, message):
    with pytest.raises(TableError, match=message):
        reads(row, **choices)


def test_contexts_may_be_in_several_columns():
    rows = [{"question": "q", "one": "a", "two": '["b", "c"]', "answer": "r"}, {"question": "q", "answer": "r"}]
    table = table_of(rows)
    reader = RecordReader(column_choices({"contexts_column": ["one", "two"]}), table)
    first, second = map(reader.read, table.entries)

    assert [context.text for context in first.record.contexts] == ["a", "b", "c"]
    assert second.record.contexts is None
    assert "contexts from 'one and two'" in reader.columns_read


RAGAS = {"user_input": "q", "retrieved_contexts": ["c"], "response": "r", "reference": "x", "reference_contexts": []}
DEEPEVAL = {"input": "q", "actual_output": "r", "expected_output": "x", "retrieval_context": ["c"], "context": ["y"]}
ROWS_OF_TOOLS = [
    RAGAS,
    {"question": "q", "contexts": ["c"], "answer": "r", "ground_truth": "x"},  # Ragas before 0.2
    DEEPEVAL,
    {"input": "q", "actualOutput": "r", "expectedOutput": "y", "retrievalContext": ["c"], "context": None},
    {"User Input": "q", "Retrieved Contexts": ["c"], "Response": "r"},
    {"app_id": 1, "record_id": "a", "input": "q", "output": "r", "contexts": ["c"]},  # TruLens
    {"inputs.question": "q", "outputs.answer": "r", "outputs.contexts": ["c"], "reference.answer": "x"},  # LangSmith
    {"inputs": {"input": "q"}, "outputs": {"output": "r", "documents": ["c"]}, "reference": "x"},
    {"inputs": '{"question": "q"}', "outputs": '{"answer": "r", "contexts": ["c"]}', "error": ""},
]


@pytest.mark.parametrize("row", ROWS_OF_TOOLS)
def test_the_names_of_other_tools_are_recognized_and_told_in_a_line(row):
    read = reads(row)
    line = RecordReader({}, table_of([row])).columns_read

    assert (read["question"], read["contexts"], read["answer"]) == ("q", ["c"], "r")
    assert line.startswith("reading question from '")
