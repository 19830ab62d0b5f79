"""What is written of a record, and what is read of one that somebody else wrote."""

import enum

import pytest

from ragspan import RagRecord
from ragspan.exceptions import RecordError
from ragspan.records import MAX_JSON

ROOM = MAX_JSON - 200


class Colour(enum.Enum):
    RED = 1


class Word(str):
    __slots__ = ()


def record_with(**parts):
    """The JSON of a record, where the parts are JSON texts."""
    parts = {"question": '"q"', "contexts": "[]", "response": '"r"'} | parts
    return "{" + ",".join(f'"{name}":{text}' for name, text in parts.items()) + "}"


@pytest.mark.parametrize(
    "text",
    [
        record_with(response='"' + "r" * MAX_JSON + '"'),
        record_with(metadata='{"k":' + "[" * 100_000 + "]" * 100_000 + "}"),
        "[" * ROOM,
    ],
    ids=["bytes", "depth", "brackets"],
)
def test_what_is_too_much_is_refused(text):
    with pytest.raises(RecordError):
        RagRecord.from_json(text)


@pytest.mark.parametrize(
    "text",
    [
        record_with(status='["SECRET"]'),
        record_with(tags='[{"SECRET": 1}]'),
        record_with(contexts='[{"SECRET": 1}]'),
        record_with(started_ns='"SECRET"'),
        record_with(question="SECRET"),
        record_with(metadata='{"SECRET": NaN}'),
    ],
)
def test_what_is_refused_is_not_shown(text):
    with pytest.raises(RecordError) as refusal:
        RagRecord.from_json(text)
    assert "SECRET" not in str(refusal.value)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (2**990 - 1, {"k": 2**990 - 1}),
        ([-(10**5_000)], {"k": []}),
        ({True: 1, "a": 2}, {"k": {"a": 2}}),
        (object(), {}),
        ({"a": Colour.RED, "b": Word("w\ud800")}, {"k": {"a": 1, "b": "w?"}}),
    ],
    ids=lambda value: "",
)
def test_metadata_that_json_cannot_hold_is_left_out_and_the_rest_comes_back(value, read):
    record = RagRecord(question="q", contexts=[], response="r", metadata={"k": value})

    assert RagRecord.from_json(record.to_json()).metadata == read
