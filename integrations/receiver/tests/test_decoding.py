"""From requests to spans."""

from __future__ import annotations

import gzip
import json
import random

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ragspan_receiver.bodies import RefusedError, from_json, unpacked
from ragspan_receiver.spans import batch_of, decoded

TRACE, SPAN, PARENT = bytes(range(1, 17)), bytes(range(1, 9)), b"a parent"


def unpack(body):
    return unpacked(body, 5000)


def spans_of(request):
    return spans_in(request.SerializeToString())


def spans_in(body):
    batch = batch_of(body)
    return [one for spans in batch.traces.values() for one in decoded(spans)]


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


def test_a_span_that_no_reader_cares_for_keeps_its_place_and_loses_its_attributes(span, request_with):
    (read,) = spans_of(request_with(span(TRACE, SPAN, attributes={"http.route": "/ask"}), scope="http"))

    assert (read.span_id, read.parent_id, read.name) == (SPAN.hex(), None, "work")
    assert read.attributes == {}


@pytest.mark.parametrize(
    "name",
    ["gen_ai.operation.name", "traceloop.span.kind", "llm.request.type", "openinference.span.kind"],
)
def test_a_span_is_read_for_the_names_of_its_attributes_whatever_its_scope(span, request_with, name):
    (read,) = spans_of(request_with(span(TRACE, attributes={name: "x"}), scope="my.company"))

    assert read.attributes == {name: "x"}


def test_json_holds_the_same_as_protobuf(span, request_with):
    request = request_with(
        span(TRACE, SPAN, PARENT, {"llm.x": "ü", "n": 2**40}, start_time_unix_nano=5), service="shop"
    )
    content = MessageToDict(request)
    (one,) = content["resourceSpans"][0]["scopeSpans"][0]["spans"]
    one |= {"traceId": TRACE.hex().upper(), "spanId": SPAN.hex(), "parentSpanId": PARENT.hex(), "unknown": 1}

    assert spans_in(from_json(json.dumps(content).encode())) == spans_of(request)


@pytest.mark.parametrize(
    ("read", "body"),
    [
        *((from_json, body) for body in (
            b"", b"null", b"[1]", b"{", b'{"resourceSpans": 7}', b"\xff\xfe", b'{"resourceSpans":' + b"[" * 100_000,
            b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "xy"}]}]}]}',
            b'{"resourceSpans": [{"scopeSpans": [{"spans": [3]}]}]}',
        )),
        *((batch_of, body) for body in (b"\xff" * 100, b"hello", b"\x0a\xff\xff\xff\xff\x0f")),
        *((unpack, body) for body in (
            b"spans", b"", gzip.compress(b"spans" * 100)[:-9], gzip.compress(b"a") + b"more",
        )),
    ],
    ids=lambda value: getattr(value, "__name__", "body"),
)  # fmt: skip
def test_a_body_that_is_no_request_is_refused(read, body):
    with pytest.raises(RefusedError, match="the body"):
        read(body)


def test_a_span_without_an_id_that_can_be_one_is_rejected(span, request_with):
    spans = [span(bytes(16)), span(b"short"), span(TRACE, bytes(8)), span(TRACE, b"1"), span(TRACE)]
    batch = batch_of(request_with(*spans).SerializeToString())

    assert batch.rejected == 4
    assert [len(spans) for spans in batch.traces.values()] == [1]


def test_spans_of_ragspan_itself_are_not_read(answer, request_with):
    batch = batch_of(request_with(answer(TRACE), scope="ragspan").SerializeToString())

    assert (batch.own, batch.traces) == (1, {})


def test_a_span_that_is_nested_without_end_is_rejected(span, request_with):
    one = span(TRACE, attributes={"llm.x": []})
    value = b""
    for _ in range(10_000):
        value = b"\x2a" + _sized(b"\x0a" + _sized(value))  # an array that holds it
    one.attributes[0].value.ParseFromString(b"")
    body = b"\x0a" + _sized(b"\x12" + _sized(b"\x12" + _sized(b"\x4a" + _sized(b"\x12" + _sized(value)))))

    batch = batch_of(body)

    assert (batch.rejected, batch.traces) == (1, {})


def _sized(content):
    size, length = bytearray(), len(content)
    while True:
        size.append(length & 0x7F | (0x80 if length > 0x7F else 0))
        length >>= 7
        if not length:
            return bytes(size) + content


def test_a_span_that_is_too_large_or_none_is_rejected_alone(span, request_with):
    large = span(TRACE, attributes={"llm.x": "x" * 5_000_000})
    broken = span(TRACE, attributes={"llm.x": "no text of UTF-8"})
    body = request_with(large, broken, span(TRACE)).SerializeToString().replace(b"no text", b"no\xff text"[:7])

    batch = batch_of(body)

    assert (batch.rejected, [len(spans) for spans in batch.traces.values()]) == (2, [1])


@pytest.mark.parametrize("count", [50_001, 5_000_000])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_body_of_millions_of_empty_messages_is_refused_before_there_are_any(count, level):
    tags = [b"\x0a", b"\x12", b"\x12"]
    body = (tags[level] + b"\x00") * count
    for tag in reversed(tags[:level]):
        body = tag + _sized(body)

    with pytest.raises(RefusedError, match=r"this request may have \d+ spans and other parts"):
        batch_of(body)


@given(st.integers(0, 2**32), st.integers(1, 8))
def test_bytes_that_were_changed_on_the_way_are_refused_or_read(seed, changes):
    draw = random.Random(seed)
    request = ExportTraceServiceRequest()
    of_resource = request.resource_spans.add()
    of_resource.resource.attributes.add(key="service").value.string_value = "shop"
    of_scope = of_resource.scope_spans.add()
    of_scope.scope.name = "app"
    for number in range(3):
        one = of_scope.spans.add(trace_id=TRACE, span_id=bytes([number + 1] * 8), parent_span_id=PARENT, name="ask")
        one.attributes.add(key="llm.x").value.array_value.values.add().int_value = 300
        one.events.add(name="event", time_unix_nano=5)
    body = bytearray(request.SerializeToString())
    for _ in range(changes):
        body[draw.randrange(len(body))] = draw.randrange(256)
    try:
        batch = batch_of(bytes(body))
    except RefusedError:
        return

    for spans in batch.traces.values():
        assert len(list(decoded(spans))) == len(spans)


def test_a_gzip_bomb_is_unpacked_no_further_than_to_the_bound():
    with pytest.raises(RefusedError, match="may unpack to 1000 bytes"):
        unpacked(gzip.compress(bytes(10_000_000)), 1000)
