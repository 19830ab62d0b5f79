"""Probes beside bodies that cost much to read: they are answered in time, and the event loop does none of that work."""

from __future__ import annotations

import asyncio
import gzip
import time
from contextlib import contextmanager

import httpx
import pytest

from ragspan_receiver.traces import BufferLimits

pytestmark = [pytest.mark.slow, pytest.mark.alone]

AT_ONCE = 16
LONGEST_STEP = 0.05  # seconds of processor time in the event loop; less than 0.02 where nothing else runs
LONGEST_PROBE = 5.0  # seconds; on a quiet machine it is a tenth of that, and without the threads it was 54
PROTOBUF, JSON = "application/x-protobuf", "application/json"
BOMBS = {
    "zeros": (PROTOBUF, lambda: bytes(64 * 1024 * 1024)),
    "objects in JSON": (JSON, lambda: b'{"resourceSpans":[' + b"{}," * 5_000_000 + b"{}]}"),
    "depth in JSON": (JSON, lambda: b'{"x":' + b"[" * 8_000_000 + b"]" * 8_000_000 + b"}"),
}


@contextmanager
def longest_steps():
    """Notes how much processor time each step of the event loop takes in its own thread; a busy machine adds none."""
    took = []
    run = asyncio.Handle._run

    def measured(handle):
        began = time.thread_time()
        run(handle)
        took.append(time.thread_time() - began)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.Handle, "_run", measured)
        yield took


def send(url, kind, body):
    """Like somebody who means no good: it does not wait for long, and comes again."""
    headers = {"content-type": kind, "content-encoding": "gzip"}
    with httpx.Client(timeout=60, trust_env=False) as client:
        return client.post(url, content=body, headers=headers).status_code


def probe(address, is_over):
    """Seconds that each probe takes, until it is over."""
    took = []
    with httpx.Client(timeout=60, trust_env=False) as client:
        while not (is_over() and took):
            began = time.monotonic()
            assert client.get(f"http://{address}/healthz").status_code == 200
            took.append(time.monotonic() - began)
            time.sleep(0.01)
    return took


@pytest.mark.parametrize(("kind", "make"), BOMBS.values(), ids=list(BOMBS))
async def test_probes_are_answered_beside_bombs_and_the_event_loop_never_works_for_long(serving, kind, make):
    bomb = gzip.compress(make(), 1)
    async with serving(BufferLimits()) as served:
        await asyncio.to_thread(send, served.url, kind, gzip.compress(b""))  # what is imported with the first request
        with longest_steps() as steps:
            sending = [asyncio.to_thread(send, served.url, kind, bomb) for _ in range(AT_ONCE)]
            sent = asyncio.gather(*sending)
            probes = await asyncio.to_thread(probe, served.address, sent.done)
            statuses = await sent

    assert set(statuses) <= {413, 400, 503}, statuses
    assert max(probes) <= LONGEST_PROBE
    assert max(steps) <= LONGEST_STEP
