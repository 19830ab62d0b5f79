"""What the tests submit to a sink, and how they find it in the stream."""

from __future__ import annotations

from waiting import PATIENCE

from ragspan import RagRecord
from ragspan_nats.message import MESSAGE_ID, json_in


class FakeCapture:
    """A capture that becomes what it is told to."""

    def __init__(self, make=lambda: None, *, size=100):
        self.to_record = make
        self.size_hint = size


def a_record(record_id="r-1", **changes):
    given = {"question": "Why?", "contexts": ["Because."], "response": "Because.", "started_ns": 1}
    return RagRecord(record_id=record_id, **(given | changes))


def records(count):
    """As many records, with the ids `r-0`, `r-1` and so on."""
    return [a_record(f"r-{number}") for number in range(count)]


def submit(sink, *captures):
    """Submit these, and wait until all of them are out."""
    for capture in captures:
        sink.submit(capture)
    assert sink.flush(PATIENCE)


def stored_ids(broker, stream="ragspan"):
    """The ids of the records in the stream, in the order in which they came in."""
    return [message.headers[MESSAGE_ID] for message in broker.messages(stream)]


def stored_records(broker, stream="ragspan"):
    """The records in the stream, as a worker reads them."""
    return [record_of(message) for message in broker.messages(stream)]


def record_of(message):
    """The record that a message holds, as a worker reads it."""
    return RagRecord.from_json(json_in(message.payload, message.headers))
