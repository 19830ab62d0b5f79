"""Records as messages, and what is refused of messages that anybody may have published."""

from __future__ import annotations

import gzip
import json
import re
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from submitted import a_record, record_of

from ragspan import RagRecord
from ragspan.exceptions import RecordError
from ragspan.record_json import MAX_JSON
from ragspan_nats.message import ENCODING, MESSAGE_ID, BrokerMessage, message_id_of, message_of

ALWAYS, NEVER = 0, MAX_JSON


@given(text=st.text(alphabet=st.characters(exclude_categories=())), compress_above=st.sampled_from([ALWAYS, NEVER]))
def test_a_worker_reads_the_record_and_headers_are_plain_text(text, compress_above):
    """Whatever it holds, lone surrogates included."""
    record = a_record(text, question=text, metadata={text: text})
    message = message_of(record, compress_above=compress_above)
    headers = message.headers

    assert (ENCODING in headers) == (compress_above == ALWAYS)
    assert record_of(message) == record

    assert MESSAGE_ID in headers
    for name, value in headers.items():
        assert re.fullmatch(r"[A-Za-z-]+", name)
        assert re.fullmatch(r"[\x20-\x7e]+", value)


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
        record_of(BrokerMessage(payload=payload, headers=headers))


@given(position=st.integers(0, 10_000), byte=st.integers(0, 255), packs=st.booleans())
def test_a_damaged_message_is_refused_or_read_as_a_record(position, byte, packs):
    message = message_of(a_record(response="x" * 500), compress_above=ALWAYS if packs else NEVER)
    payload = bytearray(message.payload)
    payload[position % len(payload)] = byte
    try:
        record = record_of(BrokerMessage(payload=bytes(payload), headers=message.headers))
    except RecordError:
        return
    assert isinstance(record, RagRecord)


@pytest.mark.parametrize("kept", [0, 1, 10, -1])
def test_a_message_that_is_cut_off_is_refused(kept):
    message = message_of(a_record(response="x" * 500), compress_above=ALWAYS)
    with pytest.raises(RecordError, match="cut off"):
        record_of(BrokerMessage(payload=message.payload[:kept], headers=message.headers))


def test_a_bomb_is_refused_before_it_takes_the_memory():
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    megabyte = bytes(1024 * 1024)
    bomb = b"".join([*(packer.compress(megabyte) for _ in range(100)), packer.flush()])
    tracemalloc.start()
    try:
        with pytest.raises(RecordError, match="unpacks to more than"):
            record_of(BrokerMessage(payload=bomb, headers={ENCODING: "gzip"}))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(bomb) < 1024 * 1024
    assert peak < 3 * MAX_JSON
