from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from ragspan.judges.llm.client_pool import ClientPool


class Clients:
    """Counts those that were opened."""

    def __init__(self):
        self.opened = 0

    @asynccontextmanager
    async def open(self):
        self.opened += 1
        yield f"client {self.opened}"


@pytest.fixture
def clients():
    return Clients()


@pytest.fixture
def spread(clients):
    return ClientPool(clients.open, each=2, most=2)


async def borrow(spread, stack, count):
    return [await stack.enter_async_context(spread.borrowed()) for _ in range(count)]


async def test_one_request_after_the_other_takes_one_client(spread, clients):
    for _ in range(5):
        async with spread.borrowed() as client:
            assert client == "client 1"

    assert clients.opened == 1


async def test_another_client_is_opened_when_the_first_has_its_fill(spread):
    async with AsyncExitStack() as stack:
        assert await borrow(spread, stack, 3) == ["client 1", "client 1", "client 2"]


async def test_with_as_many_clients_as_may_be_the_requests_are_shared_out(spread, clients):
    async with AsyncExitStack() as stack:
        borrowed = await borrow(spread, stack, 8)

    assert borrowed.count("client 1") == borrowed.count("client 2") == 4
    assert clients.opened == 2


async def test_a_client_that_is_open_is_used_before_another_is_opened(spread):
    async with AsyncExitStack() as stack:
        await borrow(spread, stack, 3)

    async with AsyncExitStack() as stack:
        assert await borrow(spread, stack, 3) == ["client 1", "client 1", "client 2"]


async def test_a_request_that_fails_or_is_cancelled_makes_room(spread):
    async def fail():
        async with spread.borrowed():
            raise ConnectionError

    async def wait():
        async with spread.borrowed():
            await asyncio.Event().wait()

    waiting = asyncio.create_task(wait())
    with pytest.raises(ConnectionError):
        await fail()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    async with AsyncExitStack() as stack:
        assert await borrow(spread, stack, 2) == ["client 1", "client 1"]


async def test_a_client_that_cannot_be_opened_leaves_room_for_the_next_try():
    @asynccontextmanager
    async def failing():
        raise OSError
        yield

    spread = ClientPool(failing, each=1, most=1)

    for _ in range(3):
        with pytest.raises(OSError):
            async with spread.borrowed():
                pass

    assert [lane.requests for lane in spread._lanes] == [0]


async def test_requests_of_the_parent_take_no_room_in_a_fork(spread, monkeypatch):
    child = os.getpid() + 1
    async with AsyncExitStack() as stack:
        await borrow(spread, stack, 4)
        monkeypatch.setattr(os, "getpid", lambda: child)

        async with spread.borrowed() as client:
            assert client == "client 3"
        monkeypatch.undo()
