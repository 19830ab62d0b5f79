"""Records as messages, and what is refused of messages that anybody may have published."""

from __future__ import annotations

import datetime as dt
import enum
import gzip
import json
import re
import tracemalloc
import types
import uuid
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from submitted import a_record, record_of

from ragspan import RagRecord, RecordError, Retrieval, RetrievedContext, SpanAnchor
from ragspan.record_json import MAX_DEPTH, MAX_JSON
from ragspan_nats.message import (
    ENCODING,
    MESSAGE_ID,
    Message,
    message_id_of,
    message_of,
)

ALWAYS, NEVER = 0, MAX_JSON


class Colour(enum.Enum):
    RED = 1


class Word(str):
    __slots__ = ()


texts = st.text(alphabet=st.characters(exclude_categories=()), max_size=30)  # lone surrogates as well
plain = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | texts
odd = (
    st.sampled_from([Colour.RED, Word("w"), object(), b"bytes", {1, 2}, dt.date(2026, 1, 1), uuid.UUID(int=1)])
    | st.dictionaries(texts, plain, max_size=2).map(types.MappingProxyType)
    | st.dictionaries(st.integers() | st.booleans(), plain, max_size=2)
)
values = st.recursive(
    plain | odd, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
metadata = st.dictionaries(texts, plain, max_size=3) | st.dictionaries(texts, values, max_size=3)
contexts = st.builds(
    RetrievedContext,
    text=texts,
    id=st.none() | texts,
    rank=st.none() | st.integers(0, 99),
    score=st.none() | st.floats(),
    metadata=metadata,
)
searches = st.builds(
    Retrieval,
    name=texts,
    query=st.none() | texts,
    started_ns=st.integers(0, 2**63 - 1),
    ended_ns=st.integers(0, 2**63 - 1),
    contexts=st.lists(contexts, max_size=2).map(tuple),
)
anchors = st.builds(
    SpanAnchor,
    trace_id=st.integers(1, 2**128 - 1),
    span_id=st.integers(1, 2**64 - 1),
    trace_flags=st.integers(0, 255),
    trace_state=texts,
    is_remote=st.booleans(),
)
any_records = st.builds(
    RagRecord,
    question=st.none() | texts,
    contexts=st.none() | st.lists(contexts, max_size=3).map(tuple),
    response=st.none() | texts,
    record_id=texts,
    parent=st.none() | anchors,
    retrievals=st.lists(searches, max_size=2).map(tuple),
    tags=st.lists(texts, max_size=2).map(tuple),
    metadata=metadata,
)


@given(record=any_records, compress_above=st.sampled_from([ALWAYS, NEVER]))
def test_a_worker_reads_what_the_records_own_json_says(record, compress_above):
    message = message_of(record, compress_above=compress_above)

    assert (ENCODING in message.headers) == (compress_above == ALWAYS)
    assert record_of(message) == RagRecord.from_json(record.to_json())


@given(record=any_records)
def test_headers_are_plain_text_whatever_a_record_holds(record):
    headers = message_of(record, compress_above=NEVER).headers

    assert MESSAGE_ID in headers
    for name, value in headers.items():
        assert re.fullmatch(r"[A-Za-z-]+", name)
        assert re.fullmatch(r"[\x20-\x7e]+", value)


@pytest.mark.parametrize(
    "metadata",
    [
        {"k": float("nan")},
        {"k": float("inf")},
        {"k": b"bytes"},
        {"k": {1, 2}},
        {"k": uuid.UUID(int=1)},
        {"k": dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)},
        {"k": Colour.RED},
        {"k": [float("nan")]},
        {"k": {"deep": b"bytes"}},
        {1: "k"},
    ],
    ids=repr,
)
@pytest.mark.parametrize("place", ["record", "context", "evidence", "retrieval"])
def test_what_json_cannot_hold_is_named_by_its_type_wherever_it_is(metadata, place):
    passage = RetrievedContext(text="t", metadata=metadata)
    search = Retrieval(name="s", query=None, started_ns=1, ended_ns=1, contexts=(passage,))
    record = {
        "record": lambda: a_record(metadata=metadata),
        "context": lambda: a_record(contexts=(passage,)),
        "evidence": lambda: a_record(evidence=(passage,)),
        "retrieval": lambda: a_record(retrievals=(search,)),
    }[place]()

    payload = message_of(record, compress_above=NEVER).payload

    assert json.loads(payload) == json.loads(record.to_json())


def test_a_record_is_compressed_above_the_size_given():
    size = len(a_record().to_json())
    assert ENCODING not in message_of(a_record(), compress_above=size).headers
    compressed = message_of(a_record(), compress_above=size - 1)
    assert compressed.headers[ENCODING] == "gzip"
    assert json.loads(gzip.decompress(compressed.payload)) == json.loads(a_record().to_json())


def test_a_record_that_nobody_would_read_is_not_written():
    with pytest.raises(RecordError, match="bytes of JSON at most"):
        message_of(a_record(response="x" * MAX_JSON), compress_above=NEVER)


@pytest.mark.parametrize(
    "record_id",
    ["", " ", "a b", "a" * 129, "naïve", "a\r\nNats-Expected-Stream: other", "a\nb", "a\x00", "a\x7f", "\ud800"],
    ids=ascii,
)
def test_an_id_that_cannot_be_a_header_becomes_a_digest(record_id):
    digest = message_id_of(a_record(record_id))
    assert re.fullmatch(r"[0-9a-f]{64}", digest)
    assert digest == message_id_of(a_record(record_id))
    assert digest != message_id_of(a_record(record_id + "x"))


@given(payload=st.binary(max_size=200), encoding=st.none() | st.sampled_from(["gzip", "br", "", "identity"]))
def test_garbage_is_refused(payload, encoding):
    headers = {} if encoding is None else {ENCODING: encoding}
    with pytest.raises(RecordError):
        record_of(Message(payload=payload, headers=headers))


@given(position=st.integers(0, 10_000), byte=st.integers(0, 255), packs=st.booleans())
def test_a_damaged_message_is_refused_or_read_as_a_record(position, byte, packs):
    message = message_of(a_record(response="x" * 500), compress_above=ALWAYS if packs else NEVER)
    payload = bytearray(message.payload)
    payload[position % len(payload)] = byte
    try:
        record = record_of(Message(payload=bytes(payload), headers=message.headers))
    except RecordError:
        return
    assert isinstance(record, RagRecord)


@pytest.mark.parametrize("kept", [0, 1, 10, -1])
def test_a_message_that_is_cut_off_is_refused(kept):
    message = message_of(a_record(response="x" * 500), compress_above=ALWAYS)
    with pytest.raises(RecordError, match="cut off"):
        record_of(Message(payload=message.payload[:kept], headers=message.headers))


@pytest.mark.slow
def test_a_bomb_is_refused_before_it_takes_the_memory():
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    megabyte = bytes(1024 * 1024)
    bomb = b"".join([*(packer.compress(megabyte) for _ in range(500)), packer.flush()])
    tracemalloc.start()
    try:
        with pytest.raises(RecordError, match="unpacks to more than"):
            record_of(Message(payload=bomb, headers={ENCODING: "gzip"}))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(bomb) < 1024 * 1024
    assert peak < 3 * MAX_JSON


def nested(depth, opening, closing):
    text = a_record(metadata={"k": 0}).to_json()
    return text.replace('{"k":0}', '{"k":' + opening * (depth - 1) + "0" + closing * (depth - 1) + "}").encode()


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"k":', "}")])
def test_metadata_may_be_nested_only_so_deep(opening, closing):
    assert record_of(Message(payload=nested(MAX_DEPTH - 1, opening, closing))).metadata[
        "k"
    ]  # the record is around them
    for depth in (MAX_DEPTH, 200, *range(900, 1020, 4), 5000, 200_000):
        with pytest.raises(RecordError):
            record_of(Message(payload=nested(depth, opening, closing)))


@pytest.mark.parametrize(
    "payload",
    [
        b'{"question": "SECRET", "contexts": 5, "response": null}',
        b'{"question": "SECRET"',
        b'{"question": ["SECRET"], "contexts": null, "response": null}',
        b"SECRET",
    ],
)
def test_what_is_refused_is_not_shown(payload):
    with pytest.raises(RecordError) as refusal:
        record_of(Message(payload=payload))
    assert "SECRET" not in str(refusal.value)
    assert refusal.value.__cause__ is None
