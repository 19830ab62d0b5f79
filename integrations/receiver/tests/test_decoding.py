"""From requests to spans."""

from __future__ import annotations

import gzip
import json

import pytest
from google.protobuf.json_format import MessageToDict

from ragspan_receiver.receiver import MAX_BODY
from ragspan_receiver.spans import RefusedError, SpanEvent, TracedSpan, batch_of, decoded

TRACE, SPAN, PARENT = bytes(range(1, 17)), bytes(range(1, 9)), b"a parent"


def spans_in(body, **about):
    batch = batch_of(body, **({"most": MAX_BODY} | about))
    return [one for spans in batch.traces.values() for one in decoded(spans)]


def spans_of(request):
    return spans_in(request.SerializeToString())


def test_a_span_is_plain_data(span, request_with):
    attributes = {"llm.model_name": "m", "a": True, "b": 3, "c": 0.5, "d": b"x", "e": ["y", 1], "f": {"g": {"h": "i"}}}
    times = {"start_time_unix_nano": 2**64 - 1, "end_time_unix_nano": 0}
    one = span(TRACE, SPAN, PARENT, {**attributes, "j": None}, **times, trace_state="k=v")
    one.events.add(name="exception", time_unix_nano=6).attributes.extend(one.attributes[1:2])
    one.status.code, one.status.message = 2, "no"

    assert spans_of(request_with(one, service="shop")) == [
        TracedSpan(
            trace_id=TRACE.hex(),
            span_id=SPAN.hex(),
            parent_id=PARENT.hex(),
            name="work",
            start_ns=2**64 - 1,
            end_ns=0,
            attributes={**attributes, "j": None},
            events=[SpanEvent(name="exception", time_ns=6, attributes={"a": True})],
            status_error=True,
            status_message="no",
            scope="openinference.instrumentation.langchain",
            trace_state="k=v",
        )
    ]


@pytest.mark.parametrize(
    ("name", "is_read"),
    [
        *((name, True) for name in ("openinference.span.kind", "llm.request.type", "gen_ai.tool.name")),
        *((name, True) for name in ("traceloop.span.kind", "ai.operationId", "langfuse.observation.type")),
        *(("gcp.vertex.agent.event_id", True), ("http.request.method", False)),
    ],
)
def test_attributes_are_kept_where_one_has_a_name_of_a_convention(span, request_with, name, is_read):
    [read] = spans_of(request_with(span(TRACE, attributes={name: "x"}), scope="s" * 300))

    assert (read.attributes, read.scope, read.parent_id) == ({name: "x"} if is_read else {}, "s" * 200, None)


def test_json_holds_the_same_as_protobuf(span, request_with):
    request = request_with(
        span(TRACE, SPAN, PARENT, {"llm.x": "ü", "n": 2**40}, start_time_unix_nano=5), service="shop"
    )
    content = MessageToDict(request)
    (one,) = content["resourceSpans"][0]["scopeSpans"][0]["spans"]
    one |= {"traceId": TRACE.hex().upper(), "spanId": SPAN.hex(), "parentSpanId": PARENT.hex(), "unknown": 1}

    body = json.dumps(content).encode()

    assert (
        spans_in(body, is_json=True)
        == spans_in(gzip.compress(body), is_json=True, is_packed=True, most=len(body))
        == spans_of(request)
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
    with pytest.raises(
        RefusedError,
        match=r"^the body is not (an ExportTraceServiceRequest( in JSON)?|packed as it says|one whole stream)$",
    ):
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
    with pytest.raises(RefusedError, match=r"^this body may unpack to 1000 bytes$"):
        batch_of(gzip.compress(bytes(10_000_000)), most=1000, is_packed=True)
