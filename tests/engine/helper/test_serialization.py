from __future__ import annotations

import enum
import pickletools
import threading
from collections import UserDict
from dataclasses import dataclass, replace

import pytest

from ragspan.engine.helper import serialization
from ragspan.messages import ErrorReport, Message, ToolRequest
from ragspan.records import Generation, RagRecord, Reranking, Retrieval, RetrievedContext, SpanAnchor, ToolCall

ANCHOR = SpanAnchor(trace_id=2**127, span_id=2, trace_flags=0, trace_state="vendor=value", is_remote=True)
ERROR = ErrorReport(type="ValueError", message="no", stacktrace="line 1")
CONTEXT = RetrievedContext(
    text="\ud800",
    id="c1",
    rank=0,
    score=0.5,
    source="file",
    truncated=True,
    metadata={"page": 1, "share": float("inf"), "parts": [None, True, {"inner": ("a", "b")}], "tags": {"x"}},
)
MESSAGE = Message(role="assistant", text="", tool_requests=(ToolRequest(name="search", arguments="{}", id="t1"),))
RECORD = RagRecord(
    question="q",
    contexts=[CONTEXT, "plain"],
    response=None,
    status="error",
    error_type="ValueError",
    swallowed_errors=("KeyError",),
    evidence=(CONTEXT,),
    record_id="r1",
    started_ns=2**62,
    ended_ns=2**63,
    parent=ANCHOR,
    retrievals=(Retrieval(name="s", query=None, started_ns=1, ended_ns=2, contexts=(CONTEXT,), span=ANCHOR),),
    generations=(Generation(model="m", provider=None, started_ns=1, ended_ns=2, prompt=(MESSAGE,), reply=MESSAGE),),
    tool_calls=(ToolCall(name="t", started_ns=1, ended_ns=2, error=ERROR),),
    rerankings=(Reranking(name="r", query="q", started_ns=1, ended_ns=2, given=(CONTEXT,)),),
    metadata=CONTEXT.metadata,
    error=ERROR,
)


def test_a_record_arrives_as_it_was_sent():
    assert serialization.loads(serialization.dumps(RECORD)) == RECORD


class FrameworkText(str):
    """A string of a framework's."""

    __slots__ = ()


class Colour(str, enum.Enum):
    RED = "red"


class Grade(enum.IntEnum):
    FIRST = 1


class Lying:
    @property
    def __class__(self):
        raise LookupError


class Refusing:
    def __reduce__(self):
        raise LookupError


class Unreadable(UserDict):
    def items(self):
        raise LookupError


@dataclass
class OfTheApplication:
    text: str


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "arrives_as"),
    [
        (FrameworkText("text"), "text"),
        (Colour.RED, "red"),
        (Grade.FIRST, 1),
        (UserDict(key=UserDict(inner=1)), "UserDict"),
        (OfTheApplication("text"), {"text": "text"}),
        (threading.Lock(), "lock"),
        (Lying(), "Lying"),
        (Refusing(), "Refusing"),
        (Unreadable(key=1), "Unreadable"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_plain_becomes_the_plain_thing_that_it_is_a_kind_of_or_its_types_name(value, arrives_as):
    record = RagRecord(question="q", contexts=[RetrievedContext(text="t", metadata={"k": value})], response="r")

    arrived = serialization.loads(serialization.dumps(replace(record, metadata={"k": value})))

    assert arrived == RagRecord(
        question="q",
        contexts=[RetrievedContext(text="t", metadata={"k": arrives_as})],
        response="r",
        record_id=record.record_id,
        started_ns=record.started_ns,
        metadata={"k": arrives_as},
    )
    assert type(arrived.metadata["k"]) is type(arrives_as)


def test_what_is_nested_too_deep_is_cut_off():
    record = RagRecord(question="q", contexts=["c"], response="r", metadata={"deep": nested(10_000), "flat": 1})

    arrived = serialization.loads(serialization.dumps(record))

    assert (arrived.question, arrived.contexts, arrived.response) == ("q", record.contexts, "r")
    assert arrived.metadata["flat"] == 1


def test_a_record_of_a_class_of_the_applications_arrives_as_a_record():
    class Answer(RagRecord):
        __slots__ = ()

    record = Answer(question="q", contexts=["c"], response="r")

    assert type(serialization.loads(serialization.dumps(record))) is RagRecord


def test_reading_a_record_imports_nothing_but_ragspan():
    record = RagRecord(
        question=FrameworkText("q"),
        contexts=[RetrievedContext(text=FrameworkText("c"), metadata={"k": OfTheApplication("text")})],
        response=Colour.RED,
        metadata={"colour": Colour.RED, "lock": threading.Lock(), "lying": Lying()},
    )

    data = serialization.dumps(record)
    texts_in_it = {argument for _, argument, _ in pickletools.genops(data) if isinstance(argument, str)}
    assert __name__ not in texts_in_it
    assert "enum" not in texts_in_it
