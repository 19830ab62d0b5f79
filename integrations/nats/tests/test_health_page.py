"""The health page, asked by HTTP."""

from __future__ import annotations

import asyncio
import json

import pytest

from ragspan.command_line import listener_at
from ragspan_nats.command import serve_health
from ragspan_nats.worker import WorkerStats

COUNTS = {"in_flight": 0, "acknowledged": 0, "nacked": {}, "dead_lettered": {}}


def well():
    return WorkerStats(ready=True)


@pytest.fixture
async def make_page():
    made = []

    async def make(look=well):
        made.append(await serve_health(listener_at("127.0.0.1:0"), look))
        return made[-1]

    yield make
    for page in made:
        page.close()


async def connected(page):
    return await asyncio.open_connection(*page.sockets[0].getsockname())


async def answer_to(page, request):
    """All that it answers."""
    reader, writer = await connected(page)
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    return answer


async def ask(page, path):
    """The status and the page."""
    head, _, body = (await answer_to(page, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())).partition(b"\r\n\r\n")
    assert b"Content-Type: application/json" in head
    assert f"Content-Length: {len(body)}".encode() in head
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize(("is_ready", "readyz"), [(True, 200), (False, 503)])
async def test_the_status_says_whether_records_can_come(make_page, is_ready, readyz):
    page = await make_page(lambda: WorkerStats(ready=is_ready))

    assert await ask(page, "/healthz") == (200, {"ready": is_ready, **COUNTS})
    assert await ask(page, "/readyz?probe=1") == (readyz, {"ready": is_ready, **COUNTS})
    assert await ask(page, "/metrics") == (404, {"error": "there are /healthz and /readyz"})
