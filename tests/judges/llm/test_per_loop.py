from __future__ import annotations

import asyncio
import gc
import os
import threading

import pytest

from ragspan.judges.llm.client_pool import PerLoop


class Connection:
    """A resource that takes the loop a few turns to close, as sockets do."""

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
def per_loop(log):
    return PerLoop(lambda: Connection(log))


async def test_a_loop_has_one_resource(per_loop, log):
    first, second = await asyncio.gather(per_loop.current(), per_loop.current())

    assert first is second
    assert log == ["opened"]


def test_the_resource_is_closed_at_the_end_of_its_loop(per_loop, log):
    connection = asyncio.run(per_loop.current())

    assert connection.closed
    assert log == ["opened", "closed"]


def test_each_loop_has_its_own_and_closed_loops_are_let_go(per_loop, log):
    for _ in range(5):
        asyncio.run(per_loop.current())

    assert log == ["opened", "closed"] * 5
    assert len(per_loop._held) == 1


def test_a_resource_whose_holder_is_gone_when_the_loop_ends_is_closed_too(log):
    async def use_and_drop():
        await PerLoop(lambda: Connection(log)).current()

    asyncio.run(use_and_drop())

    assert log == ["opened", "closed"]


async def test_a_resource_whose_holder_is_collected_is_closed_while_the_loop_runs_on(log):
    closed = asyncio.Event()

    class Announcing(Connection):
        async def __aexit__(self, *error):
            await super().__aexit__(*error)
            closed.set()

    holder = PerLoop(lambda: Announcing(log))
    await holder.current()
    del holder
    gc.collect()

    await asyncio.wait_for(closed.wait(), timeout=30)
    assert log == ["opened", "closed"]


def test_threads_with_loops_of_their_own_get_resources_of_their_own(per_loop, log):
    found = []
    everyone_is_here = threading.Barrier(4)

    async def use():
        found.append(await per_loop.current())
        everyone_is_here.wait(timeout=30)

    threads = [threading.Thread(target=asyncio.run, args=(use(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert len(set(found)) == 4
    assert sorted(log) == ["closed"] * 4 + ["opened"] * 4


async def test_what_cannot_be_opened_is_an_error_each_time(log):
    class Broken(Connection):
        async def __aenter__(self):
            raise OSError("no such host")

    per_loop = PerLoop(lambda: Broken(log))

    for _ in range(2):
        with pytest.raises(OSError, match="no such host"):
            await per_loop.current()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_opens_its_own_and_leaves_its_parents_alone(log):
    per_loop = PerLoop(lambda: Connection(log))
    loop = asyncio.new_event_loop()
    parents = loop.run_until_complete(per_loop.current())

    child = os.fork()
    if child == 0:
        its_own = asyncio.run(per_loop.current())
        del per_loop
        gc.collect()
        right = its_own is not parents and not parents.closed and log == ["opened", "opened", "closed"]
        os._exit(0 if right else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not parents.closed
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    assert parents.closed
