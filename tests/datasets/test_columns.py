"""Where the parts of a record are."""

from __future__ import annotations

import pytest

from ragspan.datasets.columns import ColumnChoices, answer_column, readers_for
from ragspan.exceptions import ConfigurationError, TableError

NESTED = {"question": "q", "prediction": {"contexts": ["a"], "deep": {"answer": "r"}}, "prediction.answer": "literal"}


def reads(row, **choices):
    readers = readers_for(ColumnChoices(**choices), list(row), [row])
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
    readers = readers_for(ColumnChoices(contexts="question", answer="a.b"), ["question", "a"], [{"a": {"b": 1}}])

    assert [readers["answer"](row) for row in ({"a": None}, {"a": 7}, {}, {"a": "text"})] == [None] * 4


def test_optional_parts_are_read_where_their_standard_columns_are_there():
    row = {"question": "q", "contexts": "c", "answer": "r", "id": 1, "session_id": 2}

    assert set(reads(row)) == {"question", "contexts", "answer", "id", "session_id"}


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (
            {"answer": "anwser"},
            "no column 'anwser' to read the answer from; there are: 'question', 'contexts', 'answer'; did you mean 'answer'",
        ),
        ({"answer": "output"}, "name the right one with answer_column= or --answer-column"),
        ({"contexts": "answer.contexts"}, "'answer' holds no dictionaries"),
        ({"id": "number"}, "no column 'number' to read the id from"),
    ],
)
def test_a_missing_column_is_an_error_that_names_what_there_is(choices, message):
    row = {"question": "q", "contexts": "c", "answer": "r"}

    with pytest.raises(TableError, match=message):
        reads(row, **choices)


def test_a_key_that_no_row_has_is_an_error_that_names_the_nearest():
    with pytest.raises(
        TableError, match=r"there are: 'prediction\.contexts', 'prediction\.deep'; did you mean 'prediction\.contexts'"
    ):
        reads(NESTED, contexts="prediction.context", answer="question")


def test_the_ground_truth_is_another_name_for_the_answer():
    assert (
        answer_column("answer", "truth") == answer_column("truth", "truth") == answer_column("truth", None) == "truth"
    )


def test_two_different_answers_are_an_error():
    with pytest.raises(ConfigurationError, match="answer_column is 'a' and ground_truth_column is 'b'"):
        answer_column("a", "b")
