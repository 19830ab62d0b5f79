"""The helper's own program: answers what it is asked, until nobody is there to ask.

Guarantees:
- It ends when its socket does, after what it still has to send has been sent or its time for that is up.
- Signals meant for the application (Ctrl-C, a service manager's SIGTERM) are ignored: the application decides when it
  needs its helper no longer, and it may still have work for it on its own way out.
- What goes wrong while it answers is the answer. Log records go to the application's log.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import pickle
import signal
import socket
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from ragspan.engine.helper import wire
from ragspan.engine.helper.link import Link

_ROLES = {"judge": "ragspan.engine.helper.judging", "score": "ragspan.engine.helper.scoring"}
_PRIORITY = 5  # of 19: requests come first where processors are short


class Service(Protocol):
    """What a helper does."""

    def handle(self, kind: str, payload: list[Any]) -> Awaitable[object] | None:
        """The answer to a question; None for what has none."""
        ...

    def finish(self) -> None:
        """The application is gone: send what is left."""
        ...


def main(descriptor: int) -> None:
    """Serve on this socket until its other end is closed, and end the process."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(_PRIORITY)
    try:
        asyncio.run(_serve(socket.socket(fileno=descriptor)))
    except BaseException:  # noqa: BLE001 - a mistake of ours, which nothing else would show
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # threads of exporters and models may hang


async def _serve(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def end() -> None:
        if not ended.done():
            ended.set_result(None)

    server = _Server(on_end=end)
    await loop.create_connection(lambda: server.link, sock=connection)
    await ended
    if server.service is not None:
        server.service.finish()


class _Server:
    """Hands questions to the service and answers back."""

    def __init__(self, *, on_end: Callable[[], None]) -> None:
        self.service: Service | None = None
        self.link = Link(encode=_encoded, decode=wire.loads, on_message=self._received, on_lost=on_end)
        self._tasks: set[asyncio.Task[None]] = set()

    def _received(self, message: tuple[Any, ...]) -> None:
        kind, number, *payload = message
        task = asyncio.get_running_loop().create_task(self._answer(kind, number, payload))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, kind: str, number: int, payload: list[Any]) -> None:
        try:
            answer = await self._answer_of(kind, payload)
            message = ("answer", number, answer)
            pickle.dumps(message)
        except BaseException as error:  # noqa: BLE001 - judges and metrics may be the user's
            message = ("refusal", number, f"{type(error).__name__}: {error}")
        if number or kind == "serve":
            self.link.send(message)

    async def _answer_of(self, kind: str, payload: list[Any]) -> object:
        if kind == "serve":
            self._begin(*payload)
            return wire.FORMAT
        if self.service is None:
            raise RuntimeError("the helper was not told what to do")
        answer = self.service.handle(kind, payload)
        return None if answer is None else await answer

    def _begin(self, role: str, *arguments: Any) -> None:
        logging.getLogger().addHandler(_ToApplication(self.link))
        self.service = importlib.import_module(_ROLES[role]).serve(self.link, *arguments)


class _ToApplication(logging.Handler):
    """Log records of the helper belong into the application's log."""

    def __init__(self, link: Link) -> None:
        super().__init__(logging.WARNING)
        self._link = link
        self._loop = asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        note = ("log", 0, record.name, record.levelno, record.getMessage())
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._link.send, note)


def _encoded(messages: list[Any]) -> bytes:
    return pickle.dumps(messages, 5)
