"""Records as messages, and what is refused of messages that anybody may have published."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from submitted import a_record, record_of

from ragspan.exceptions import RecordError
from ragspan.records import MAX_JSON
from ragspan_nats.message import ENCODING, MESSAGE_ID, BrokerMessage, message_of


@given(text=st.text(alphabet=st.characters(exclude_categories=())), length=st.sampled_from([1, 10_000]))
def test_a_worker_reads_the_record_and_headers_are_plain_text(text, length):
    """Whatever it holds, lone surrogates included; long ones are compressed."""
    record = a_record(text, question=text, metadata={text: text}, response="x" * length)
    message = message_of(record)

    assert (ENCODING in message.headers) == (len(record.to_json()) > 8192)
    assert record_of(message) == record
    assert MESSAGE_ID in message.headers
    for name, value in message.headers.items():
        assert re.fullmatch(r"[A-Za-z-]+", name)
        assert re.fullmatch(r"[\x20-\x7e]+", value)


def test_the_headers_are_those_of_a_message_that_nats_knows_and_of_gzip():
    assert message_of(a_record()).headers == {"Nats-Msg-Id": "r-1"}
    assert message_of(a_record(response="x" * 10_000)).headers == {"Nats-Msg-Id": "r-1", "Content-Encoding": "gzip"}


def test_the_largest_record_is_read_and_a_larger_one_is_not_written():
    room = MAX_JSON - len(a_record(response="x").to_json()) + 1
    largest = a_record(response="x" * room)

    assert record_of(message_of(largest)) == largest
    with pytest.raises(RecordError, match="bytes of JSON at most"):
        message_of(a_record(response="x" * (room + 1)))


@pytest.mark.parametrize(
    "record_id",
    ["", "a b", "a" * 129, "a\r\nNats-Expected-Stream: other", "\ud800"],
    ids=ascii,
)
def test_an_id_that_cannot_be_a_header_becomes_a_digest(record_id):
    digest, again, other = (
        message_of(a_record(one)).headers[MESSAGE_ID] for one in (record_id, record_id, record_id + "x")
    )
    assert re.fullmatch(r"[0-9a-f]{64}", digest)
    assert digest == again != other


@given(payload=st.binary(max_size=200), encoding=st.none() | st.sampled_from(["gzip", "br", "", "identity"]))
def test_garbage_is_refused(payload, encoding):
    headers = {} if encoding is None else {ENCODING: encoding}
    with pytest.raises(RecordError):
        record_of(BrokerMessage(payload=payload, headers=headers))
