"""Bodies that cost little to send: what they cost us, in processor time for a megabyte that came."""

from __future__ import annotations

import contextlib
import gzip
import json

import pytest
from processor import seconds_of

from ragspan_receiver.bodies import RefusedError
from ragspan_receiver.intake import MAX_BODY, MAX_JSON
from ragspan_receiver.spans import batch_of, content_of

pytestmark = pytest.mark.alone

MEGABYTE = 1_000_000
MOST = 0.25  # seconds of processor time for a megabyte, where nothing else runs
TRACE = b"1" * 16


def sized(content):
    size, length = bytearray(), len(content)
    while True:
        size.append(length & 0x7F | (0x80 if length > 0x7F else 0))
        length >>= 7
        if not length:
            return bytes(size) + content


def a_span(number, rest=b""):
    return b"\x12" + sized(b"\x0a" + sized(TRACE) + b"\x12" + sized((number + 1).to_bytes(8, "big")) + rest)


def request_of(span, number):
    return b"\x0a" + sized(b"\x12" + sized(b"".join(a_span(place, span) for place in range(number))))


def json_of(spans):
    return f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}'.encode()


IDS = '"traceId":"' + "1" * 32 + '","spanId":"' + "2" * 16 + '"'
INTS = b"\x4a" + sized(b"\x12" + sized(b"\x2a" + sized(b"\x0a\x02\x18\x01" * 200_000)))
PROTOBUF = {
    "zeros": lambda: bytes(16 * 1024 * 1024),
    "numbers in lists": lambda: request_of(INTS, 15),
    "empty attributes": lambda: request_of(b"J\0" * 200_000, 30),
    "events": lambda: request_of(b"Z\0" * 200_000, 30),
    "links": lambda: request_of(b"j\0" * 200_000, 30),
    "small lists": lambda: request_of(b"\x4a" + sized(b"\x12" + sized(b"\x2a" + sized(b"\x0a\0" * 40))), 45_000),
    "small spans": lambda: request_of(b"", 25_000),
    "line ends": lambda: request_of(b"\x4a" + sized(b"\x12" + sized(b"\x0a" + sized(b"\n" * 500))), 25_000),
    "texts": lambda: request_of(b"\x4a" + sized(b"\x12" + sized(b"\x0a" + sized(b"llm " * 125))), 25_000),
}
JSON = {
    "objects": lambda: b'{"x":[' + b"{}," * 5_000_000 + b"{}]}",
    "resources": lambda: b'{"resourceSpans":[' + b"{}," * 5_000_000 + b"{}]}",
    "spans": lambda: json_of(",".join(["{" + IDS + "}"] * 150_000)),
    "numbers": lambda: json_of(
        "{" + IDS + ',"attributes":[{"key":"a","value":{"arrayValue":{"values":['
        + ",".join(['{"intValue":"1"}'] * 600_000) + "]}}}]}"
    ),
    "empty texts": lambda: b'{"x":[' + b'"",' * 5_000_000 + b'""]}',
    "names": lambda: json_of("{" + ",".join(['"a":1'] * 2_000_000) + "}"),
    "depth": lambda: b'{"x":' + b"[" * 8_000_000 + b"]" * 8_000_000 + b"}",
    "digits": lambda: json_of('{"startTimeUnixNano":' + "9" * 16_000_000 + "}"),
    "digits in a text": lambda: json_of('{"startTimeUnixNano":"' + "9" * 16_000_000 + '"}'),
    "a large text deep inside": lambda: json_of(
        "{" + IDS + ',"attributes":[{"key":"a","value":' + '{"arrayValue":{"values":[' * 900 + '{"stringValue":"'
        + "x" * 10_000_000 + '"}' + "]}}" * 900 + "}]}"
    ),
    "escaped quotation marks": lambda: b'{"x":"' + b'\\"' * 8_000_000 + b'"}',
    "escaped backslashes": lambda: b'{"x":"' + b"\\\\," * 5_000_000 + b'"}',
    "escaped characters": lambda: json_of('{"name":"' + "\\u0041" * 2_500_000 + '"}'),
}  # fmt: skip
PACKED = {"zeros", "small spans", "objects", "spans"}
"""What is sent in gzip as well, where the bound of what may be unpacked ends it."""
BODIES = [
    (name, make, is_json, is_packed)
    for is_json, bodies in ((False, PROTOBUF), (True, JSON))
    for name, make in bodies.items()
    for is_packed in ([False, True] if name in PACKED else [False])
]


@pytest.mark.parametrize(
    ("make", "is_json", "is_packed"),
    [one[1:] for one in BODIES],
    ids=[f"{name}, {'JSON' if is_json else 'protobuf'}{', packed' * packed}" for name, _, is_json, packed in BODIES],
)
def test_a_megabyte_costs_a_quarter_of_a_second_at_most(make, is_json, is_packed):
    body = make()
    body = gzip.compress(body, 1) if is_packed else body
    allowed = 2 * MOST * max(1, len(body) / MEGABYTE)

    def read():
        with contextlib.suppress(RefusedError):
            content = content_of(body, most=MAX_JSON if is_json else MAX_BODY, is_json=is_json, is_packed=is_packed)
            batch_of(content, received=len(body))

    assert seconds_of(*[read] * 4, enough=allowed) <= allowed


def test_a_body_in_gzip_twice_is_no_request():
    with pytest.raises(RefusedError, match="the body is not an ExportTraceServiceRequest"):
        batch_of(content_of(gzip.compress(gzip.compress(b"")), most=MAX_BODY, is_json=False, is_packed=True))


@pytest.mark.parametrize("number", [2_000, 8_000])
def test_a_large_batch_of_an_honest_sender_is_taken(number, span, request_with):
    """With forty attributes a span, and texts of many lines; packed nearly as well as texts can be."""
    about = {f"llm.{place}": "a line\nand one more\n" * 5 for place in range(40)}
    body = request_with(*(span(TRACE, attributes=about) for _ in range(number))).SerializeToString()

    assert len(batch_of(body).traces[TRACE]) == number
    if number == 2_000:
        packed = gzip.compress(body)
        content = content_of(packed, most=MAX_BODY, is_json=False, is_packed=True)
        assert len(batch_of(content, received=len(packed)).traces[TRACE]) == number


def test_a_batch_in_json_as_sdks_send_it_is_taken():
    attributes = [{"key": f"llm.{place}", "value": {"stringValue": "a, b, [c]"}} for place in range(40)]
    spans = [{"traceId": "1" * 32, "spanId": f"{place + 1:016x}", "attributes": attributes} for place in range(512)]
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()

    content = content_of(body, most=MAX_JSON, is_json=True, is_packed=False)

    assert sum(map(len, batch_of(content, received=len(body)).traces.values())) == 512
