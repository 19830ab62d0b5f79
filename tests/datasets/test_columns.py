"""Where the parts of a record are."""

from __future__ import annotations

import pytest

from ragspan.datasets.columns import column_choices, readers_for, recognized, told
from ragspan.exceptions import ConfigurationError, TableError

NESTED = {"question": "q", "prediction": {"contexts": ["a"], "deep": {"answer": "r"}}, "prediction.answer": "literal"}


def reads(row, **choices):
    readers = readers_for(recognized(choices, list(row), [row]), list(row), [row])
    return {part: reader(row) for part, reader in readers.items()}


def test_parts_are_read_by_name_path_and_function():
    read = reads(NESTED, contexts="prediction.contexts", answer=lambda row: row["question"].upper())

    assert read == {"question": "q", "contexts": ["a"], "answer": "Q"}


def test_a_column_that_has_a_path_for_its_name_wins():
    assert reads(NESTED, contexts="question", answer="prediction.answer")["answer"] == "literal"


def test_paths_may_be_deep_and_dictionaries_may_be_json_text():
    row = {"question": "q", "prediction": '{"deep": {"answer": "r"}}'}

    assert reads(row, contexts="question", answer="prediction.deep.answer")["answer"] == "r"


def test_a_path_that_leads_nowhere_in_a_row_reads_nothing():
    readers = readers_for({"contexts": "question", "answer": "a.b"}, ["question", "a"], [{"a": {"b": 1}}])

    assert [readers["answer"](row) for row in ({"a": None}, {"a": 7}, {}, {"a": "text"})] == [None] * 4


def test_optional_parts_are_read_where_their_standard_columns_are_there():
    row = {"question": "q", "contexts": "c", "answer": "r", "id": 1, "session_id": 2}

    assert set(reads(row)) == {"question", "contexts", "answer", "id", "session_id"}


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (
            {"answer": "anwser"},
            "no column 'anwser' to read the response from; there are: 'question', 'contexts', 'answer'; did you mean 'answer'",
        ),
        ({"answer": "output"}, "name the right one with answer_column= or --answer-column"),
        (
            {"contexts": "answer.contexts"},
            "no column 'answer.contexts' to read the contexts from; there are: 'question', 'contexts', 'answer'",
        ),
        ({"id": "number"}, "no column 'number' to read the id from"),
    ],
)
def test_a_missing_column_is_an_error_that_names_what_there_is(choices, message):
    row = {"question": "q", "contexts": "c", "answer": "r"}

    with pytest.raises(TableError, match=message):
        reads(row, **choices)


def test_a_key_that_no_row_has_is_an_error_that_names_the_nearest():
    with pytest.raises(
        TableError, match=r"'prediction\.contexts', 'prediction\.deep', .*; did you mean 'prediction\.contexts'"
    ):
        reads(NESTED, contexts="prediction.context", answer="question")


def test_the_ground_truth_is_another_name_for_the_answer():
    for answer, ground_truth in ((None, "truth"), ("truth", "truth"), ("truth", None)):
        named = {"answer_column": answer, "ground_truth_column": ground_truth, "id_column": "i"}
        assert column_choices(named) == {"answer": "truth", "id": "i"}
    assert column_choices({"answer_column": None, "ground_truth_column": None}) == {}


def test_two_different_answers_are_an_error():
    with pytest.raises(ConfigurationError, match="answer_column is 'a' and ground_truth_column is 'b'"):
        column_choices({"answer_column": "a", "ground_truth_column": "b"})


ROWS_OF_TOOLS = {
    "Ragas": {
        "user_input": "q",
        "retrieved_contexts": ["c"],
        "response": "r",
        "reference": "x",
        "reference_contexts": [],
    },
    "Ragas before 0.2": {"question": "q", "contexts": ["c"], "answer": "r", "ground_truth": "x"},
    "DeepEval": {
        "input": "q",
        "actual_output": "r",
        "expected_output": "x",
        "retrieval_context": ["c"],
        "context": ["y"],
    },
    "TruLens": {"app_id": 1, "record_id": "a", "input": "q", "output": "r", "contexts": ["c"]},
    "LangSmith": {"inputs.question": "q", "outputs.answer": "r", "outputs.contexts": ["c"], "reference.answer": "x"},
}
NESTED_RUN = {"inputs": {"input": "q"}, "outputs": {"output": "r", "documents": ["c"]}, "reference": {"output": "x"}}
TEST_RUN = {"input": "q", "actualOutput": "r", "expectedOutput": "x", "retrievalContext": ["c"], "context": None}
SPREADSHEET = {"Question": "q", "Retrieved Contexts": ["c"], "Response": "r"}


@pytest.mark.parametrize("row", [*ROWS_OF_TOOLS.values(), NESTED_RUN, TEST_RUN, SPREADSHEET])
def test_the_names_of_other_tools_are_recognized(row):
    read = reads(row)

    assert (read["question"], read["contexts"], read["answer"]) == ("q", ["c"], "r")


@pytest.mark.parametrize("tool", ROWS_OF_TOOLS)
def test_what_is_read_as_what_is_told_in_a_line(tool):
    row = ROWS_OF_TOOLS[tool]
    line = told(recognized({}, list(row), [row]), list(row))

    assert line.startswith("reading question from '")
    assert (f"(the names of {tool})" in line) == (tool != "Ragas before 0.2")  # those are ragspan's own
    assert ("no metric needs a reference" in line) == ("x" in row.values())


def test_dictionaries_may_be_json_text_in_a_csv_file_of_langsmith():
    row = {"inputs": '{"question": "q"}', "outputs": '{"answer": "r", "contexts": ["c"]}', "error": ""}

    assert (reads(row)["question"], reads(row)["contexts"], reads(row)["answer"]) == ("q", ["c"], "r")


def test_of_many_columns_the_first_are_named():
    row = {f"column {number}": "" for number in range(1000)}

    with pytest.raises(TableError, match="'column 39', and 960 more; name"):
        reads(row)


def test_names_that_a_user_gives_come_before_those_that_are_known():
    row = {"question": "q", "contexts": ["c"], "answer": "a", "response": "r"}

    assert reads(row, answer="response")["answer"] == "r"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"question": "q", "contexts": ["c"], "answer": "a", "response": "r"},
            "several columns may be the response: 'answer', 'response'; name the right one with answer_column= or --answer-col",
        ),
        (
            {"query": "q", "Query": "q", "contexts": [], "answer": "a"},
            "several columns may be the question: 'query', 'Query'",
        ),
        (
            {"inputs": {"text": "q"}, "contexts": [], "answer": "a"},
            r"no column looks like the question.*'inputs\.text'",
        ),
    ],
)
def test_columns_that_may_be_meant_or_not_are_refused(row, message):
    with pytest.raises(TableError, match=message):
        reads(row)
