"""Messages that no application of ours would publish, for the tests of a fleet."""

from __future__ import annotations

import gzip
import itertools
import json
import socket

from fleet_parts import STREAM
from fleet_records import a_record
from servers.broker import HOST

GZIP = {"Content-Encoding": "gzip"}
_numbers = itertools.count()


def no_records():
    """Payloads and headers of messages that hold no record."""
    good = a_record(10**6).to_json().encode()
    bomb = gzip.compress(b" " * 40_000_000)
    return {
        "nothing": (b"", None),
        "half a record": (good[: len(good) // 2], None),
        "a number": (b"1e999", None),
        "an order": (b'{"order": 17, "lines": [{"article": "pen", "count": 3}]}', None),
        "a wrong type": (altered(question=17), None),
        "contexts that are none": (altered(contexts={"text": "x"}), None),
        "brackets": (b'{"metadata": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", None),
        "compressed only by its header": (good, GZIP),
        "cut off": (gzip.compress(good)[:-20], GZIP),
        "a bomb": (bomb, GZIP),
        "small lists in a small message": packed(small_lists(10_000_000)),
        "more than anybody reads": packed(altered(response="x" * 5_000_000)),
        "a score that is no number": (altered(contexts=[{"text": "c", "score": float("nan")}]), None),
        "a mark of its order of bytes": (b"\xef\xbb\xbf" + good, None),
        "another encoding": (good, {"Content-Encoding": "br"}),
        "an encoding of many kilobytes": (good, {"Content-Encoding": "x" * 50_000}),
    }


def raw_frames():
    """Headers that are none, as only a client can send that does not check them."""
    return {
        "a status that is no text": (b"NATS/1.0 \xff\xfe\xfd\r\n\r\n", b"x"),
        "no headers at all": (b"garbage", b"x"),
        "what the broker says itself": (b"NATS/1.0 404 No Messages\r\n\r\n", b""),
        "an end of the request": (b"NATS/1.0\r\nStatus: 409\r\nDescription: Consumer Deleted\r\n\r\n", b""),
        "letters of no alphabet": (b"NATS/1.0\r\n\xff\xfe: \xff\xfe\r\nNats-Msg-Id: \xff\xfe\r\n\r\n", b"x"),
        "many headers": (b"NATS/1.0\r\n" + b"".join(b"a%d: b\r\n" % n for n in range(5_000)) + b"\r\n", b"x"),
        "one header many times": (b"NATS/1.0\r\n" + b"Content-Encoding: gzip\r\n" * 2_000 + b"\r\n", b"x"),
        "control characters": (b"NATS/1.0\r\nX-\x00: a\x00\x1b[31m\rb\nc\r\nNats-Msg-Id: \x00\x1b\r\n\r\n", b"x"),
    }


def send_raw(broker, frames):
    """Put messages with these headers, as bytes, among the records."""
    subject = STREAM.records.encode()
    with socket.create_connection((HOST, broker.port), timeout=20) as connection:
        connection.recv(4096)
        connection.sendall(b'CONNECT {"verbose": false, "pedantic": false, "headers": true, "protocol": 1}\r\n')
        for headers, payload in frames:
            sizes = f"{len(headers)} {len(headers) + len(payload)}".encode()
            connection.sendall(b"HPUB " + subject + b" " + sizes + b"\r\n" + headers + payload + b"\r\n")
        connection.sendall(b"PING\r\n")
        said = b""
        while b"PONG" not in said:
            said += connection.recv(4096)
            assert b"-ERR" not in said, said


def packed(payload):
    return gzip.compress(payload), GZIP


def altered(**changes):
    """The JSON of a record with other values."""
    record = a_record(10**6 + next(_numbers))
    return json.dumps(json.loads(record.to_json()) | changes).encode()


def small_lists(number):
    return altered(metadata={"k": 0}).replace(b'{"k": 0}', b'{"k": [' + b"[]," * number + b"[]]}")
