"""How an endpoint shares its open clients among requests, event loops, threads and processes."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from contextlib import AsyncExitStack

import pytest

from ragspan.judges import client_pool
from ragspan.judges.client_pool import ClientPool


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
    monkeypatch.setattr(client_pool, "_REQUESTS_EACH", 2)
    monkeypatch.setattr(client_pool, "_MOST_CLIENTS", 2)
    return ClientPool(lambda: Client(log))


async def borrow(pool, stack, count):
    return [await stack.enter_async_context(pool.borrowed()) for _ in range(count)]


async def use(pool):
    async with pool.borrowed() as client:
        return client


@pytest.mark.parametrize(("requests", "shares"), [(2, [2]), (3, [2, 1]), (4, [2, 2]), (8, [4, 4])])
async def test_a_client_is_opened_when_the_others_are_full_up_to_the_limit(pool, requests, shares):
    for _ in range(2):  # the second time they are open
        async with AsyncExitStack() as stack:
            borrowed = await borrow(pool, stack, requests)

    assert [borrowed.count(client) for client in dict.fromkeys(borrowed)] == shares


async def test_a_request_that_fails_makes_room(pool, log):
    for _ in range(5):
        with pytest.raises(ConnectionError):
            async with pool.borrowed():
                raise ConnectionError

    assert log == ["opened"]


def test_each_loop_has_its_own_which_is_closed_at_its_end_and_released(pool, log):
    clients = [asyncio.run(use(pool)) for _ in range(5)]

    assert log == ["opened", "closed"] * 5
    assert all(client.closed for client in clients)
    assert len(pool._open) == 1


def test_a_client_whose_pool_is_gone_when_the_loop_ends_is_closed_too(log):
    async def use_and_drop():
        await use(ClientPool(lambda: Client(log)))

    asyncio.run(use_and_drop())

    assert log == ["opened", "closed"]


async def test_a_client_whose_pool_is_collected_is_closed_while_the_loop_runs_on(log):
    closed = asyncio.Event()

    class Announcing(Client):
        async def __aexit__(self, *error):
            await super().__aexit__(*error)
            closed.set()

    pool = ClientPool(lambda: Announcing(log))
    await use(pool)
    del pool
    gc.collect()

    await asyncio.wait_for(closed.wait(), timeout=30)


def test_threads_with_loops_of_their_own_get_clients_of_their_own(pool, log):
    found = []
    everyone_is_here = threading.Barrier(4)

    async def work():
        found.append(await use(pool))
        everyone_is_here.wait(timeout=30)

    threads = [threading.Thread(target=asyncio.run, args=(work(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert len(set(found)) == 4
    assert sorted(log) == ["closed"] * 4 + ["opened"] * 4


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
