"""An OTLP/HTTP endpoint that counts what it is sent.

    python -m serving.sink [--port PORT]

It takes `POST` of anything, counts what comes to `/v1/traces`, and tells with `GET /counts` how many spans came, under which first words of their names,
and how many values of ragspan's metrics were on them. Spans are not decoded: the few fields on the way to a span's name
are stepped over, which costs a microsecond each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Iterator

from serving.listening import Exchange, listen

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""Protobuf's wire types."""
_RESOURCE_SPANS, _SCOPE_SPANS, _SPANS, _NAME = 1, 2, 2, 5
"""Field numbers of OTLP's trace messages, from the outside in."""
_LAST = 0x7F
"""The largest byte that ends a number."""
_SCORE = b"ragspan.score."


class Counts:
    """What came so far."""

    def __init__(self) -> None:
        self.requests = 0
        self.scores = 0
        self.spans: Counter[str] = Counter()

    def add(self, body: bytes) -> None:
        self.requests += 1
        self.scores += body.count(_SCORE)
        for resource in fields(body, _RESOURCE_SPANS):
            for scope in fields(resource, _SCOPE_SPANS):
                self.spans.update(first_word(span) for span in fields(scope, _SPANS))

    def to_json(self) -> bytes:
        return json.dumps(
            {
                "requests": self.requests,
                "spans": self.spans.total(),
                "by_first_word": self.spans,
                "scores": self.scores,
            }
        ).encode()


def first_word(span: memoryview) -> str:
    name = next(fields(span, _NAME), memoryview(b""))
    return bytes(name).partition(b" ")[0].decode()


def fields(message: bytes | memoryview, wanted: int) -> Iterator[memoryview]:
    """The contents of all fields of this number that have a length."""
    message = memoryview(message)
    place = 0
    while place < len(message):
        key, place = varint(message, place)
        number, wire_type = key >> 3, key & 7
        if wire_type == _BYTES:
            length, place = varint(message, place)
            if number == wanted:
                yield message[place : place + length]
            place += length
        elif wire_type == _VARINT:
            _, place = varint(message, place)
        else:
            place += {_FIXED64: 8, _FIXED32: 4}[wire_type]


def varint(message: memoryview, place: int) -> tuple[int, int]:
    """The number that begins here, and where it ends."""
    number = shift = 0
    while True:
        byte = message[place]
        number |= (byte & _LAST) << shift
        place, shift = place + 1, shift + 7
        if byte <= _LAST:
            return number, place


async def serve(port: int) -> None:
    counts = Counts()

    async def respond(exchange: Exchange) -> None:
        if exchange.path == "/v1/traces":
            counts.add(exchange.body)
        await exchange.answer(counts.to_json() if exchange.method == "GET" else b"{}")

    await listen(port, respond)


def main() -> None:
    parser = argparse.ArgumentParser(description="Counts the spans that it is sent.")
    parser.add_argument("--port", type=int, default=0)
    asyncio.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
