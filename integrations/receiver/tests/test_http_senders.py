"""Senders over HTTP that are slow, hang or go away, and many of them at once."""

from __future__ import annotations

import asyncio
import os
import threading

import httpx
import pytest
from http_senders import connected, post, until

from ragspan_receiver import receiver as taking
from ragspan_receiver import servers
from ragspan_receiver.traces import BufferLimits

SLOW = BufferLimits()
CUT_OFF = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: 9\r\n\r\n1"


async def test_probes_are_answered_while_bodies_are_read(serving, monkeypatch):
    may_read, read = threading.Event(), taking.batch_of

    def read_late(*body, **about):
        assert may_read.wait(60)
        return read(*body, **about)

    monkeypatch.setattr(taking, "batch_of", read_late)
    async with serving(SLOW) as served, httpx.AsyncClient(base_url=f"http://{served.address}") as client:
        posted = [asyncio.create_task(post(served, b"", timeout=60)) for _ in range(16)]
        await until(lambda: served.receiver.held == 0 and len(posted) == 16)
        answers = [(await client.get(page)).status_code for page in ("/healthz", "/readyz")]
        may_read.set()
        statuses = {(await one).status_code for one in posted}

    assert (answers, statuses) == ([200, 200], {200})


@pytest.mark.parametrize("end", ["taken", "refused", "no protobuf", "too large", "gone", "hangs"])
async def test_however_a_request_ends_its_bytes_are_given_back(serving, monkeypatch, answer, request_with, end):
    """After 256 MiB everything would be refused otherwise."""
    monkeypatch.setattr(servers, "_PATIENCE", 0.3 if end == "hangs" else 60)
    monkeypatch.setattr(taking, "_MAX_HELD", 100 if end == "refused" else 2**30)
    body = {"no protobuf": b"hello" * 100, "too large": bytes(taking.MAX_BODY + 1)}.get(end)
    body = body or request_with(answer(os.urandom(16))).SerializeToString()
    async with serving(SLOW) as served:
        if end in {"gone", "hangs"}:
            reader, writer = await connected(served)
            writer.write(CUT_OFF)
            await until(lambda: served.receiver.held == 1)
            if end == "hangs":
                assert b" 408 " in await reader.readline()
            writer.close()
        else:
            await post(served, body)
        await until(lambda: served.receiver.held == 0)
        assert served.receiver.traces.counts["requests.gone"] == (end == "gone")
