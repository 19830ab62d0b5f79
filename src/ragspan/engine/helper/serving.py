"""The helper's own program: it answers questions until the application is gone.

Guarantees:
- It ends when the application does, however that ends and whatever hangs here. Before that its service may finish what
  it has in work, within its time.
- Signals for the application (Ctrl-C, a service manager's SIGTERM) are ignored: the application ends its helper, and may
  need it until its own end.
- An error in an answer is the answer. Log records go to the application's log.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import importlib
import logging
import os
import select
import signal
import socket
import threading
import traceback
from typing import Any, NoReturn

from ragspan.engine.helper import serialization
from ragspan.engine.helper.connection import FramedProtocol, Message
from ragspan.engine.threads import DaemonThreads, WorkerLoop, call_guarded

_SERVICES = "ragspan.engine.helper_services"
"""Is imported with the first question, so that the application's log shows what goes wrong."""
_PRIORITY = 5  # of 19: requests come first where processors are short
_STDOUT, _STDERR = 1, 2
_IO_THREADS = 32
_STOP_TIMEOUT = 5.0  # seconds to send what is left when the application is gone
_READ_TIMEOUT = 0.5  # seconds to read the last messages, if a child of the application keeps the socket open
_GC_THRESHOLD = 10_000  # objects
_LOOK_AGAIN = 1.0  # seconds between looks for the application

_logger = logging.getLogger("ragspan")


def main(descriptor: int, application: int) -> NoReturn:
    """Serve on this socket until its other end is closed or the process of this number is gone, and end the process."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(_PRIORITY)
    try:
        _serve(socket.socket(fileno=descriptor), application)
    except BaseException:  # noqa: BLE001 - a mistake of ours, which nothing else would show
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # tasks, threads of exporters and models may hang


def _serve(connection: socket.socket, application: int) -> None:
    loop = WorkerLoop(threads=DaemonThreads(_IO_THREADS, name="ragspan-io"), on_error=_note_error)
    watched = os.dup(connection.fileno())
    server = loop.run_until_complete(_connected(connection))
    watch = (watched, application, server, loop)
    threading.Thread(target=_watch, args=watch, name="ragspan-watch", daemon=True).start()
    while not server.is_ended:  # a metric can stop the loop, too
        _, error = call_guarded(loop.run_forever)
        if error is not None:
            _note_error(error)
    call_guarded(loop.run_until_complete, server.finish())


async def _connected(connection: socket.socket) -> _Server:
    server = _Server()
    await asyncio.get_running_loop().create_connection(lambda: server.link, sock=connection)
    return server


def _watch(descriptor: int, application: int, server: _Server, loop: asyncio.AbstractEventLoop) -> None:
    """When the application is gone, end the server, and the process if it does not end in time."""
    poll = select.poll()
    poll.register(descriptor, 0)  # for nothing but the end of the connection
    while not poll.poll(_LOOK_AGAIN * 1000) and os.getppid() == application:
        pass
    os.dup2(_STDOUT, _STDERR)  # whoever reads the application's output need not wait for us
    loop.call_soon_threadsafe(loop.call_later, _READ_TIMEOUT, server.end)
    threading.Event().wait(_READ_TIMEOUT + server.time_to_work + _STOP_TIMEOUT + 1)
    os._exit(1)


def _note_error(error: BaseException) -> None:
    _logger.warning("the helper ran into a %s", type(error).__name__)


class Service:
    """What a helper does, from its first question to its end."""

    time_to_work = 0.0
    """Seconds that it goes on with open questions when the application is gone."""

    async def stop(self, timeout: float) -> None:
        """The time to work is over: send what is left within `timeout` seconds."""


class _Server:
    """Hands questions to the service and sends its answers."""

    def __init__(self) -> None:
        self.service: Service | None = None
        self.is_ended = False
        self.link = FramedProtocol(on_message=self._received, on_lost=self.end)
        self.tasks: dict[int, asyncio.Task[object]] = {}
        """By the numbers of their questions."""
        self._loop = asyncio.get_running_loop()

    @property
    def time_to_work(self) -> float:
        """Seconds, see `Service`."""
        return 0.0 if self.service is None else self.service.time_to_work

    def end(self) -> None:
        """The application is gone: let the program go on with its last steps."""
        if not self.is_ended:
            self.is_ended = True
            self._loop.stop()

    async def finish(self) -> None:
        """Go on with the open questions for as long as the service may, and stop it."""
        ends_at = self._loop.time() + self.time_to_work
        while self.tasks and (left := ends_at - self._loop.time()) > 0:
            await asyncio.wait(self.tasks.values(), timeout=left)
        if self.service is not None:
            await self.service.stop(_STOP_TIMEOUT)

    def _received(self, message: Message) -> None:
        kind, number, *payload = message
        if kind == "cancel":
            if (task := self.tasks.get(payload[0])) is not None:
                task.cancel()
            return
        task = self.tasks[number] = self._loop.create_task(self._answer(kind, payload))
        task.add_done_callback(functools.partial(self._answered, number))

    def _answered(self, number: int, task: asyncio.Task[object]) -> None:
        del self.tasks[number]
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is None:
            self.link.send(("answer", number, task.result()))
        else:
            self.link.send(("refusal", number, f"{type(error).__name__}: {error}"))

    async def _answer(self, kind: str, payload: list[Any]) -> object:
        if kind == "serve":
            return self._begin(*payload)
        return await getattr(self.service, kind)(*payload)

    def _begin(self, service: str, *arguments: Any) -> str:
        logging.getLogger().addHandler(_ToApplication(self.link))
        self.service = getattr(importlib.import_module(_SERVICES), service)(self.link, *arguments)
        gc.freeze()  # what is there now stays, and a record leaves no cycles: the collector finds next to nothing
        gc.set_threshold(_GC_THRESHOLD)
        return serialization.FORMAT


class _ToApplication(logging.Handler):
    """Sends the helper's log records to the application."""

    def __init__(self, link: FramedProtocol) -> None:
        super().__init__(logging.WARNING)
        self._link = link
        self._loop = asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):  # a message that does not fit its arguments, a loop that is closed
            note = ("log", 0, record.name, record.levelno, record.getMessage())
            self._loop.call_soon_threadsafe(self._link.send, note)
