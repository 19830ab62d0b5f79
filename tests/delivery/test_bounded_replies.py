"""What a backend may make us read: so many bytes, so many seconds, and nothing of another server."""

from __future__ import annotations

import gzip
import json
import time
import tracemalloc

import pytest
import requests
from servers.http import LocalHttp
from servers.raw import RawServer, head

from ragspan.delivery import Unavailable
from ragspan.delivery.http import MAX_PAGE, MAX_REPLY, Endpoint, HttpClient, session_for
from ragspan.delivery.sessions import BoundedSession

PATIENCE = 20.0
"""Seconds in which a call has to be over that may take 0.3: a busy machine is slow, a dripping server goes on for ever."""


@pytest.fixture(autouse=True)
def _without_proxies(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def called(url, *, most=MAX_REPLY, **given):
    client = HttpClient(Endpoint(url=url, **given), most=most)
    try:
        return client.call("POST", "/scores", json={"comment": "a user's words"})
    finally:
        client.close()


@pytest.mark.parametrize(
    "begun",
    [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nx-long: ", head(1_000_000)],
    ids=["status", "headers", "a header", "body"],
)
def test_a_server_that_drips_holds_a_call_no_longer_than_its_timeout(begun):
    server = RawServer(lambda: server.dripping(begun))
    with server:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            called(server.url, timeout=0.3)

    assert time.monotonic() - began < PATIENCE


def test_neither_does_one_that_drips_in_chunks():
    def answer():
        yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        for _ in server.dripping():
            yield b"1\r\nx\r\n"

    server = RawServer(answer)
    with server, pytest.raises(TimeoutError):
        called(server.url, timeout=0.3)


def test_neither_does_a_proxy_that_drips(monkeypatch):
    proxy = RawServer(lambda: proxy.dripping(b"HTTP/1.1 200 OK\r\nx-long: "))
    with proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        with pytest.raises((TimeoutError, Unavailable)):
            called("https://scores.invalid", timeout=0.3)

        assert proxy.requests[0].startswith(b"CONNECT scores.invalid")


def test_a_reply_that_unpacks_to_a_gigabyte_is_not_unpacked():
    piece = gzip.compress(bytes(1 << 20))
    bomb = piece * 1024  # members of one stream; a gigabyte, unpacked
    server = RawServer(lambda: [head(len(bomb), **{"Content-Encoding": "gzip"}), bomb])
    one = gzip.compress(bytes(1 << 26))
    single = RawServer(lambda: [head(len(one), **{"Content-Encoding": "gzip"}), one])
    tracemalloc.start()
    try:
        for attacked in (server, single):
            with attacked, pytest.raises(Unavailable):
                called(attacked.url)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 4 * MAX_REPLY


def test_a_reply_without_end_is_read_up_to_the_bound():
    def answer():
        yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n["
        for _ in range(1024):
            yield b"0," * (1 << 19)

    with RawServer(answer) as server, pytest.raises(Unavailable, match="reply_too_large"):
        called(server.url)

    assert MAX_REPLY <= server.sent < 16 * MAX_REPLY  # sockets hold some megabytes


def test_neither_is_one_that_unpacks_to_nothing_read_for_longer():
    def answer():
        yield b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x08" + bytes(6)  # a file's name follows
        for _ in range(1024):
            yield b"n" * (1 << 20)

    with RawServer(answer) as server, pytest.raises(Unavailable):
        called(server.url)

    assert server.sent < 16 * MAX_REPLY


def test_of_a_failure_without_end_the_status_still_counts():
    def answer():
        yield b"HTTP/1.1 422 Unprocessable\r\n\r\n"
        for _ in range(64):
            yield b"no, " * (1 << 18)

    with RawServer(answer) as server:
        reply = called(server.url)

    assert (reply.status, len(reply.text)) == (422, MAX_REPLY)


def objects(size, step):
    return b'{"data":[' + b",".join(b'{"k%d":{"a":[0]}}' % number for number in range(size // step)) + b"]}"


WIDE = {
    "lists": lambda size: b"[" + b",".join([b"[]"] * (size // 3)) + b"]",
    "objects": lambda size: objects(size, 20),
    "names": lambda size: b"{" + b",".join(b'"%07d":1' % number for number in range(size // 12)) + b"}",
    "names of nothing": lambda size: b"{" + b",".join([b'"":""'] * (size // 6)) + b"}",
}


@pytest.mark.parametrize(
    ("kind", "most"), [*((kind, MAX_REPLY) for kind in WIDE), ("lists", MAX_PAGE), ("names", MAX_PAGE)]
)
def test_a_reply_of_very_many_values_takes_no_more_than_ten_times_its_bound(kind, most):
    body = WIDE[kind](most - 1000)
    unprocessable = head(len(body)).replace(b"200 OK", b"422 Unprocessable")
    with RawServer(lambda: [head(len(body)), body]) as taken, RawServer(lambda: [unprocessable, body]) as refused:
        tracemalloc.start()
        try:
            with pytest.raises(Unavailable, match="reply_too_large"):
                called(taken.url, most=most)
            assert called(refused.url, most=most).body == {}
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert peak < 10 * most


@pytest.mark.parametrize(("kind", "size"), [("lists", 48_000), ("objects", 160_000), ("names", 384_000)])
def test_one_of_nearly_as_many_values_as_it_may_have_is_read_within_the_same_bound(kind, size):
    body = WIDE[kind](size)
    with RawServer(lambda: [head(len(body)), body]) as server:
        tracemalloc.start()
        try:
            assert called(server.url).is_ok
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert peak < 10 * MAX_REPLY


def test_one_long_text_is_too_large_and_not_only_unreadable():
    body = json.dumps({"comment": "a" * MAX_REPLY}).encode()
    with RawServer(lambda: [head(len(body)), body]) as server, pytest.raises(Unavailable, match="reply_too_large"):
        called(server.url)


def test_what_the_texts_of_a_reply_hold_is_no_value():
    text = '[{"a": 1}, \\ ' * 20_000
    with RawServer(lambda: [head(len(body)), body]) as server:
        body = json.dumps({"comment": text}).encode()
        assert called(server.url).body == {"comment": text}


def test_json_that_nests_without_end_is_no_reply():
    with RawServer(lambda: [head(30_000), b"[" * 30_000]) as server, pytest.raises(Unavailable, match="no_json"):
        called(server.url)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_byte_of_a_request_follows_a_redirect(status):
    arrived = []
    other = LocalHttp(lambda request: arrived.append(request) or (200, {}, b"{}"))
    first = LocalHttp(lambda _: (status, {"Location": f"{other.url}/elsewhere"}, b""))
    try:
        with pytest.raises(Unavailable, match=f"http_{status}"):
            called(first.url)
        with session_for(Endpoint(url=first.url)) as session:  # as an exporter of spans uses it
            assert session.post(f"{first.url}/v1/traces", data=b"spans").status_code == status
    finally:
        first.close()
        other.close()

    assert arrived == []


def test_packed_replies_are_read_and_keep_their_connection():
    server = LocalHttp(lambda _: (200, {"Content-Encoding": "gzip"}, gzip.compress(b'{"is": "there"}')))
    try:
        client = HttpClient(Endpoint(url=server.url))
        bodies = [client.call("GET", "/").body for _ in range(3)]
        client.close()
        with BoundedSession(most=MAX_REPLY) as session:
            streamed = session.get(server.url, stream=True)
            assert b"".join(streamed.iter_content(4)) == b'{"is": "there"}'
    finally:
        server.close()

    assert bodies == [{"is": "there"}] * 3
    assert len(server.connections) == 2


def test_a_connection_that_breaks_off_is_no_timeout():
    with RawServer(lambda: [head(100), b'{"is"']) as server:
        with BoundedSession(most=MAX_REPLY) as session, pytest.raises(requests.ConnectionError):
            session.get(server.url, timeout=5)
        with pytest.raises(Unavailable, match=r"the connection fails|closes the connection"):
            called(server.url)
