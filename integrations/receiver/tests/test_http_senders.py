"""Senders over HTTP that are slow, hang or go away, and many of them at once."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import threading
from pathlib import Path

import httpx
import pytest
from http_senders import connected, post, until

from ragspan_receiver import intake, servers
from ragspan_receiver.traces import BufferLimits

SLOW = BufferLimits()
CUT_OFF = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: 9\r\n\r\n1"


async def test_probes_are_answered_while_bodies_are_read(serving, monkeypatch):
    may_read, read = threading.Event(), intake.content_of

    def read_late(*body, **about):
        assert may_read.wait(60)
        return read(*body, **about)

    monkeypatch.setattr(intake, "content_of", read_late)
    async with serving(SLOW) as served, httpx.AsyncClient(base_url=f"http://{served.address}") as client:
        posted = [asyncio.create_task(post(served, b"", timeout=60)) for _ in range(16)]
        await until(lambda: served.intake.held == 0 and len(posted) == 16)
        answers = [(await client.get(page)).status_code for page in ("/healthz", "/readyz")]
        may_read.set()
        statuses = {(await one).status_code for one in posted}

    assert (answers, statuses) == ([200, 200], {200})


async def test_a_body_whose_sender_has_gone_is_not_read(serving, monkeypatch, answer, request_with):
    may_read, begun, read = threading.Event(), [], intake.content_of

    def read_late(*body, **about):
        begun.append(body)
        assert may_read.wait(60)
        return read(*body, **about)

    monkeypatch.setattr(intake, "content_of", read_late)
    body = request_with(answer(os.urandom(16))).SerializeToString()
    head = CUT_OFF.partition(b"Content-Length")[0] + f"Content-Length: {len(body)}\r\n\r\n".encode()
    async with serving(SLOW) as served:
        posted = [asyncio.create_task(post(served, body, timeout=60)) for _ in range(2)]
        await until(lambda: len(begun) == 2)  # all threads are busy
        _, writer = await connected(served)
        writer.write(head + body)
        await until(lambda: served.intake.held == 3 * len(body))
        writer.close()
        await until(lambda: served.receiver.counts["requests.gone"] == 1)
        may_read.set()
        assert {(await one).status_code for one in posted} == {200}
        assert served.intake.held == 0

    assert len(begun) == 2
    assert served.receiver.counts["requests.accepted"] == 2


@pytest.mark.parametrize("end", ["taken", "refused", "no protobuf", "too large", "gone", "hangs"])
async def test_however_a_request_ends_its_bytes_are_given_back(serving, monkeypatch, answer, request_with, end):
    """After 256 MiB everything would be refused otherwise."""
    monkeypatch.setattr(servers, "_PATIENCE", 0.3 if end == "hangs" else 60)
    monkeypatch.setattr(intake, "_MAX_HELD", 100 if end == "refused" else 2**30)
    body = {"no protobuf": b"hello" * 100, "too large": bytes(intake.MAX_BODY + 1)}.get(end)
    body = body or request_with(answer(os.urandom(16))).SerializeToString()
    async with serving(SLOW) as served:
        if end in {"gone", "hangs"}:
            reader, writer = await connected(served)
            writer.write(CUT_OFF)
            await until(lambda: served.intake.held == 1)
            if end == "hangs":
                await reader.readline()
            writer.close()
        else:
            await post(served, body)
        await until(lambda: served.intake.held == 0)


async def test_a_body_in_very_many_small_pieces_is_refused_at_once(serving):
    """Each piece costs as much as some kilobytes: a megabyte of such takes half a minute."""
    async with serving(SLOW) as served:
        reader, writer = await connected(served)
        head = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"
        writer.write(head + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 100_000)
        answered = await asyncio.wait_for(reader.readline(), 60)
        writer.close()

        assert (await post(served, b"")).status_code == 200
    assert answered.startswith(b"HTTP/1.1 400")


async def test_a_body_in_some_pieces_is_taken(serving, answer, request_with):
    request = request_with(*(answer(os.urandom(16), response="x" * 300) for _ in range(500))).SerializeToString()

    async def pieces():
        for place in range(0, len(request), 400):
            yield request[place : place + 400]

    async with serving(SLOW) as served:
        assert (await post(served, pieces(), timeout=60)).status_code == 200
        assert served.receiver.counts["spans.accepted"] == 500


async def test_a_new_connection_is_taken_in_place_of_the_one_that_is_silent_for_longest(serving, monkeypatch):
    monkeypatch.setattr(servers, "_MAX_CONNECTIONS", 3)
    async with serving(SLOW) as served:
        silent = []
        for _ in range(5):
            reader, writer = await connected(served)
            writer.write(b"POST /v1/traces HT")
            silent.append((reader, writer))
        first = await asyncio.wait_for(silent[0][0].read(), 60)
        async with httpx.AsyncClient(base_url=f"http://{served.address}") as client:
            assert (await client.get("/healthz")).status_code == 200
        for _, writer in silent:
            writer.close()

    assert first == b""


async def test_a_sender_that_takes_no_replies_is_let_go(serving, monkeypatch):
    monkeypatch.setattr(servers, "_PATIENCE", 0.5)
    async with serving(SLOW) as served:
        _, writer = await connected(served)
        writer.transport.pause_reading()

        async def ask_for_ever():
            while True:
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 1000)
                await asyncio.wait_for(writer.drain(), 60)

        with pytest.raises(OSError):
            await ask_for_ever()
        writer.close()


async def test_a_sender_that_hangs_in_the_middle_of_a_body_is_told_so(serving, monkeypatch):
    monkeypatch.setattr(servers, "_PATIENCE", 0.1)
    async with serving(SLOW) as served:
        reader, writer = await connected(served)
        writer.write(CUT_OFF)
        status = await asyncio.wait_for(reader.readline(), 60)
        writer.close()

    assert b" 408 " in status


async def test_a_sender_without_a_head_is_let_go(serving, monkeypatch):
    monkeypatch.setattr(servers, "_PATIENCE", 0.1)
    async with serving(SLOW) as served:
        reader, writer = await connected(served)
        writer.write(b"POST /v1/traces HT")
        closed = await asyncio.wait_for(reader.read(), 60)
        writer.close()

    assert closed == b""


@pytest.mark.parametrize("first", [b"", CUT_OFF], ids=["after a request", "after a body that stayed incomplete"])
async def test_a_sender_that_stalls_in_its_next_request_is_let_go(serving, monkeypatch, first):
    monkeypatch.setattr(servers, "_PATIENCE", 0.1)
    async with serving(SLOW) as served:
        reader, writer = await connected(served)
        writer.write(first or b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        answered = await asyncio.wait_for(reader.readline(), 60)
        writer.write(b"P")
        rest = await asyncio.wait_for(reader.read(), 60)
        writer.close()

    assert answered.startswith(b"HTTP/1.1 408" if first else b"HTTP/1.1 200")
    assert b"HTTP/1.1" not in rest


async def test_a_sender_that_goes_away_harms_nobody(serving):
    async with serving(SLOW) as served:
        _, writer = await connected(served)
        writer.write(CUT_OFF)
        writer.close()
        await writer.wait_closed()

        assert (await post(served, b"")).status_code == 200


@pytest.mark.skipif(not Path("/proc/sys/net/core/somaxconn").exists(), reason="reads Linux's bound")
async def test_connections_that_come_all_at_once_have_a_place_to_wait(serving):
    """Without one, the kernel drops their first packet, and a probe among them takes a second."""
    together = min(400, int(Path("/proc/sys/net/core/somaxconn").read_text()))
    opened = [socket.socket() for _ in range(together)]
    try:
        async with serving(SLOW) as served:
            host, _, port = served.address.partition(":")
            while (await probe(served)) != 200:
                await asyncio.sleep(0.01)
            for one in opened:  # in the server's loop, so that it takes none meanwhile
                one.setblocking(False)
                one.connect_ex((host, int(port)))
            _, made, _ = select.select([], opened, [], 0.5)
    finally:
        for one in opened:
            one.close()

    assert len(made) == together


async def probe(served):
    async with httpx.AsyncClient() as client:
        return (await client.get(f"http://{served.address}/healthz")).status_code
