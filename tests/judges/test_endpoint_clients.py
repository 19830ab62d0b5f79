"""How an endpoint shares its open clients among requests, event loops, threads and processes."""

from __future__ import annotations

import asyncio
import gc
import os

import pytest

from ragspan.judges import clients
from ragspan.judges.clients import ClientPool


class Client:
    """Takes the loop a few turns to close, as sockets do."""

    def __init__(self, log):
        self._log = log
        self.closed = False

    async def __aenter__(self):
        self._log.append("opened")
        return self

    async def __aexit__(self, *error):
        for _ in range(3):
            await asyncio.sleep(0)
        self.closed = True
        self._log.append("closed")


@pytest.fixture
def log():
    return []


@pytest.fixture
def pool(log, monkeypatch):
    monkeypatch.setattr(clients, "_REQUESTS_EACH", 2)
    monkeypatch.setattr(clients, "_MOST_CLIENTS", 2)
    return ClientPool(lambda: Client(log))


async def use(pool):
    async with pool.borrowed() as client:
        return client


def test_each_loop_has_its_own_which_is_closed_at_its_end_and_released(pool, log):
    used = [asyncio.run(use(pool)) for _ in range(5)]

    assert log == ["opened", "closed"] * 5
    assert all(client.closed for client in used)
    assert len(pool._open) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_opens_its_own_and_leaves_its_parents_alone(log):
    pool = ClientPool(lambda: Client(log))
    loop = asyncio.new_event_loop()
    parents = loop.run_until_complete(use(pool))

    child = os.fork()
    if child == 0:
        its_own = asyncio.run(use(pool))
        del pool
        gc.collect()
        right = its_own is not parents and not parents.closed and log == ["opened", "opened", "closed"]
        os._exit(0 if right else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not parents.closed
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    assert parents.closed
