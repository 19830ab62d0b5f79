"""A network between one worker and the broker that can be cut, and that can lose what a worker says."""

from __future__ import annotations

import asyncio
import contextlib
import threading

from brokers import HOST

_ACKNOWLEDGEMENT = b"$JS.ACK."
_CHUNK = 65536


class LossyNetwork:
    """Passes on what comes to its port, in a thread of its own.

    Args:
        port: of the broker on this machine.
    """

    def __init__(self, port):
        self._port = port
        self._lost = ()
        self.swallowed = 0
        """Words of workers about the end of deliveries that were lost."""
        self._loop = asyncio.new_event_loop()
        self._server = None
        self._conversations = set()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._call(self._listen())

    @property
    def url(self):
        return f"nats://{HOST}:{self._server.sockets[0].getsockname()[1]}"

    def swallow(self, *beginnings):
        """Lose what workers say of deliveries that begins so, such as `+ACK`; without any, lose nothing."""
        self._lost = tuple(beginning.encode() for beginning in beginnings)

    def close(self):
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=20)

    async def _listen(self):
        self._server = await asyncio.start_server(self._converse, HOST, 0)

    async def _end(self):
        self._server.close()
        for conversation in list(self._conversations):
            conversation.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)

    async def _converse(self, reader, writer):
        conversation = asyncio.current_task()
        self._conversations.add(conversation)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            their_reader, their_writer = await asyncio.open_connection(HOST, self._port)
            sides = [
                asyncio.create_task(self._pass_on_words(reader, their_writer)),
                asyncio.create_task(self._pass_on(their_reader, writer)),
            ]
            try:
                await asyncio.wait(sides, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for side in sides:
                    side.cancel()
                await asyncio.gather(*sides, return_exceptions=True)
                their_writer.close()
        writer.close()
        self._conversations.discard(conversation)

    async def _pass_on(self, reader, writer):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()

    async def _pass_on_words(self, reader, writer):
        """As above, but one command of NATS' protocol after the other."""
        while line := await reader.readline():
            words = line.split()
            body = b""
            if words and words[0] in {b"PUB", b"HPUB"}:
                body = await reader.readexactly(int(words[-1]) + 2)
                if words[1].startswith(_ACKNOWLEDGEMENT) and self._lost and body.startswith(self._lost):
                    self.swallowed += 1
                    continue
            writer.write(line + body)
            await writer.drain()
