from __future__ import annotations

import asyncio
import socket

import pytest

from ragspan.engine.helper.connection import FramedProtocol


class End:
    """One end, and what it has heard."""

    def __init__(self):
        self.heard = asyncio.Queue()
        self.times_lost = 0
        self.lost = asyncio.Event()
        self.link = FramedProtocol(on_message=self.heard.put_nowait, on_lost=self._lost)

    async def next(self, count=1):
        return [await asyncio.wait_for(self.heard.get(), 20) for _ in range(count)]

    def _lost(self):
        self.times_lost += 1
        self.lost.set()


@pytest.fixture
async def connected():
    ends = [End(), End()]
    for end, connection in zip(ends, socket.socketpair(), strict=True):
        connection.setblocking(False)
        await asyncio.get_running_loop().create_connection(lambda end=end: end.link, sock=connection)
    yield ends
    for end in ends:
        end.link.close()
        await end.lost.wait()


async def test_messages_arrive_in_their_order_and_those_of_one_turn_of_the_loop_in_one_batch(connected):
    here, there = connected
    written = []
    here.link._transport.write, write = lambda data: (written.append(data), write(data)), here.link._transport.write
    for number in range(100):
        here.link.send(("ask", number))
        if number == 49:
            await asyncio.sleep(0)

    assert await there.next(100) == [("ask", number) for number in range(100)]
    assert len(written) == 2


async def test_a_message_that_comes_in_pieces_is_heard_as_a_whole(connected):
    here, there = connected
    written = []
    here.link._transport.write, write = written.append, here.link._transport.write
    here.link.send(("one",))
    await asyncio.sleep(0)
    here.link.send(("two",))
    await asyncio.sleep(0)
    data = b"".join(written)
    for position in range(len(data)):
        write(data[position : position + 1])
        await asyncio.sleep(0)

    assert await there.next(2) == [("one",), ("two",)]
