"""A small HTTP server for what the benchmarks need at the other end: requests with a body, answers of any kind."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeAlias

from serving.processes import HOST, say


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """A request, and the way to answer it."""

    method: str
    path: str
    body: bytes
    writer: asyncio.StreamWriter
    _reader: asyncio.StreamReader

    async def answer(
        self, body: bytes, *, status: HTTPStatus = HTTPStatus.OK, headers: str = "", cut_after: int | None = None
    ) -> None:
        """Send an answer; with `cut_after` only so many bytes of its body, and hang up.

        Args:
            headers: further lines, each with its end.
        """
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n{headers}"
        self.writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:cut_after])
        await self.writer.drain()
        if cut_after is not None:
            self.writer.close()


Respond: TypeAlias = Callable[[Exchange], Awaitable[None]]


async def listen(port: int, respond: Respond) -> None:
    """Serve until the process is asked to end."""

    # Cancelled at the end of the process, which asyncio would report as an error of the connection.
    endings = (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError)

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(*endings), contextlib.closing(writer):
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                method, path, _ = head.split(" ", 2)
                length = head.lower().partition("content-length:")[2].partition("\r\n")[0].strip()
                body = await reader.readexactly(int(length or 0))
                await respond(Exchange(method=method, path=path, body=body, writer=writer, _reader=reader))

    server = await asyncio.start_server(converse, HOST, port)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    say(port=server.sockets[0].getsockname()[1])
    await stopped.wait()
