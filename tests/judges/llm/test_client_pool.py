from __future__ import annotations

import asyncio
import gc
import os
import threading
from contextlib import AsyncExitStack

import pytest

from ragspan.judges.llm.client_pool import ClientPool


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
def pool(log):
    return ClientPool(lambda: Client(log), each=2, most=2)


async def borrow(pool, stack, count):
    return [await stack.enter_async_context(pool.borrowed()) for _ in range(count)]


async def use(pool):
    async with pool.borrowed() as client:
        return client


# How many there are


async def test_one_request_after_the_other_takes_one_client(pool, log):
    assert len({await use(pool) for _ in range(5)}) == 1
    assert log == ["opened"]


@pytest.mark.parametrize(("requests", "shares"), [(2, [2]), (3, [2, 1]), (4, [2, 2]), (8, [4, 4])])
async def test_a_client_is_opened_when_the_others_are_full_up_to_the_limit(pool, requests, shares):
    async with AsyncExitStack() as stack:
        borrowed = await borrow(pool, stack, requests)

    assert [borrowed.count(client) for client in dict.fromkeys(borrowed)] == shares


async def test_a_client_that_is_open_is_used_before_another_is_opened(pool):
    async with AsyncExitStack() as stack:
        before = await borrow(pool, stack, 3)

    async with AsyncExitStack() as stack:
        assert await borrow(pool, stack, 3) == before


async def test_a_request_that_fails_or_is_cancelled_makes_room(pool, log):
    async def fail():
        async with pool.borrowed():
            raise ConnectionError

    async def wait():
        async with pool.borrowed():
            await asyncio.Event().wait()

    waiting = asyncio.create_task(wait())
    with pytest.raises(ConnectionError):
        await fail()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    async with AsyncExitStack() as stack:
        await borrow(pool, stack, 2)
    assert log == ["opened"]


async def test_a_client_that_cannot_be_opened_is_an_error_each_time_and_takes_no_room(log):
    class Broken(Client):
        async def __aenter__(self):
            if not is_well:
                raise OSError("no such host")
            return await super().__aenter__()

    is_well = False
    pool = ClientPool(lambda: Broken(log), each=1, most=1)

    for _ in range(3):
        with pytest.raises(OSError, match="no such host"):
            await use(pool)
    is_well = True
    await use(pool)

    assert log == ["opened"]


# Loops, threads and processes


def test_each_loop_has_its_own_which_is_closed_at_its_end_and_let_go(pool, log):
    clients = [asyncio.run(use(pool)) for _ in range(5)]

    assert log == ["opened", "closed"] * 5
    assert all(client.closed for client in clients)
    assert len(pool._held) == 1


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
    assert log == ["opened", "closed"]


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


async def test_requests_of_the_parent_take_no_room_in_a_fork_of_the_running_loop(pool, monkeypatch):
    child = os.getpid() + 1
    async with AsyncExitStack() as stack:
        parents = await borrow(pool, stack, 4)
        monkeypatch.setattr(os, "getpid", lambda: child)

        assert await use(pool) not in parents
        monkeypatch.undo()


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
