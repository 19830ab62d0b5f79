"""From requests to spans."""

from __future__ import annotations

import gzip
import json

import pytest
from google.protobuf.json_format import MessageToDict

from ragspan_receiver.receiver import MAX_BODY
from ragspan_receiver.spans import RefusedError, batch_of, decoded

TRACE, SPAN, PARENT = bytes(range(1, 17)), bytes(range(1, 9)), b"a parent"


def spans_in(body, **about):
    batch = batch_of(body, most=MAX_BODY, **about)
    return [one for spans in batch.traces.values() for one in decoded(spans)]


def spans_of(request):
    return spans_in(request.SerializeToString())


def test_a_span_is_plain_data(span, request_with):
    one = span(
        TRACE,
        SPAN,
        PARENT,
        {
            "llm.model_name": "m",
            "a": True,
            "b": 3,
            "c": 0.5,
            "d": b"x",
            "e": ["y", 1],
            "f": {"g": {"h": "i"}},
            "j": None,
        },
        start_time_unix_nano=2**64 - 1,
        end_time_unix_nano=0,
        trace_state="k=v",
    )
    one.events.add(name="exception", time_unix_nano=6)
    one.status.code, one.status.message = 2, "no"

    (read,) = spans_of(request_with(one, service="shop"))

    assert (read.trace_id, read.span_id, read.parent_id) == (TRACE.hex(), SPAN.hex(), PARENT.hex())
    assert (read.name, read.start_ns, read.end_ns, read.trace_state) == ("work", 2**64 - 1, 0, "k=v")
    assert read.attributes == {
        "llm.model_name": "m", "a": True, "b": 3, "c": 0.5, "d": b"x", "e": ["y", 1], "f": {"g": {"h": "i"}}, "j": None,
    }  # fmt: skip
    assert [(event.name, event.time_ns) for event in read.events] == [("exception", 6)]
    assert (read.status_error, read.status_message) == (True, "no")
    assert read.scope == "openinference.instrumentation.langchain"


def test_json_holds_the_same_as_protobuf(span, request_with):
    request = request_with(
        span(TRACE, SPAN, PARENT, {"llm.x": "ü", "n": 2**40}, start_time_unix_nano=5), service="shop"
    )
    content = MessageToDict(request)
    (one,) = content["resourceSpans"][0]["scopeSpans"][0]["spans"]
    one |= {"traceId": TRACE.hex().upper(), "spanId": SPAN.hex(), "parentSpanId": PARENT.hex(), "unknown": 1}

    body = json.dumps(content).encode()

    assert (
        spans_in(body, is_json=True) == spans_in(gzip.compress(body), is_json=True, is_packed=True) == spans_of(request)
    )


@pytest.mark.parametrize(
    ("about", "body"),
    [
        *(({"is_json": True}, body) for body in (
            b"", b"null", b"[1]", b"{", b'{"resourceSpans": 7}', b"\xff\xfe", b'{"resourceSpans":' + b"[" * 100_000,
            b'{"resourceSpans": [{"scopeSpans": [{"spans": [3]}]}]}',
        )),
        *(({}, body) for body in (b"\xff" * 100, b"hello", b"\x0a\xff\xff\xff\xff\x0f")),
        *(({"is_packed": True}, body) for body in (
            b"spans", b"", gzip.compress(b"spans" * 100)[:-9], gzip.compress(b"a") + b"more", gzip.compress(gzip.compress(b"")),
        )),
    ],
    ids=lambda value: str(len(value)),
)  # fmt: skip
def test_a_body_that_is_no_request_is_refused(about, body):
    with pytest.raises(RefusedError, match="the body"):
        batch_of(body, most=MAX_BODY, **about)


def test_a_span_without_an_id_that_can_be_one_is_rejected(span, request_with):
    spans = [span(bytes(16)), span(b"short"), span(TRACE, bytes(8)), span(TRACE, b"1"), span(TRACE)]
    batch = batch_of(request_with(*spans).SerializeToString(), most=MAX_BODY)

    assert batch.rejected == 4
    assert [len(spans) for spans in batch.traces.values()] == [1]


def test_spans_of_ragspan_itself_are_not_read(answer, request_with):
    batch = batch_of(request_with(answer(TRACE), scope="ragspan").SerializeToString(), most=MAX_BODY)

    assert (batch.own, batch.traces) == (1, {})


def test_a_gzip_bomb_is_unpacked_no_further_than_to_the_bound():
    with pytest.raises(RefusedError, match="may unpack to 1000 bytes"):
        batch_of(gzip.compress(bytes(10_000_000)), most=1000, is_packed=True)
