"""The helper's own program: answers what it is asked, until nobody is there to ask.

Guarantees:
- It ends when the application does, however that ends and whatever hangs here, after what it has in work has been scored
  and exported, or its time for that is up.
- Signals meant for the application (Ctrl-C, a service manager's SIGTERM) are ignored: the application decides when it
  needs its helper no longer, and it may still have work for it on its own way out.
- What goes wrong while it answers is the answer. Log records go to the application's log.
- While it has something to answer it gives a sign of life every second, as long as its threads run at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import logging
import os
import select
import signal
import socket
import threading
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, Protocol

from ragspan.engine._threads import DaemonThreads, WorkerLoop, call_guarded
from ragspan.engine.helper import serialization
from ragspan.engine.helper.connection import FramedProtocol

_ROLES = {"metrics": "MetricService", "records": "record_service"}
"""In `ragspan.engine.helper.services`, which is imported when a process turns out to be a helper's."""
_PRIORITY = 5  # of 19: requests come first where processors are short
_STDOUT, _STDERR = 1, 2
_IO_THREADS = 32
_FINISH_TIMEOUT = 5.0  # seconds to send what is left when the application is gone
_READ_TIMEOUT = 0.5  # seconds to read what it wrote last; a child of it that holds the socket lets no end be seen
_LOOK_AGAIN = 1.0  # seconds between signs of life; also until it is seen that the application is gone, where a child of
# the application holds the socket, too

_logger = logging.getLogger("ragspan")


class Service(Protocol):
    """What a helper does."""

    @property
    def ready(self) -> object:
        """What the application is told at the beginning, plain data."""
        ...

    def handle(self, kind: str, question: int, payload: list[Any]) -> Awaitable[object] | None:
        """The answer to a question, plain data; None for what has none."""
        ...

    @property
    def time_to_work(self) -> float:
        """Seconds that it goes on with what it was asked when the application is gone; 0 where only that wants to know."""
        ...

    def finish(self, timeout: float) -> None:
        """The application is gone, and so is the time to work: send what is left, within so many seconds."""
        ...


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
    watched, signs = os.dup(connection.fileno()), os.dup(_STDOUT)
    os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)
    os.set_blocking(signs, False)
    server = loop.run_until_complete(_connected(connection))
    end = functools.partial(loop.call_soon_threadsafe, server.end)
    watch = (watched, signs, application, server, end)
    threading.Thread(target=_watch, args=watch, name="ragspan-watch", daemon=True).start()
    while not server.is_ended:  # a metric can stop the loop, too
        _, error = call_guarded(loop.run_forever)
        if error is not None:
            _note_error(error)
    if server.service is not None:
        call_guarded(loop.run_until_complete, server.work(server.time_to_work))
        server.service.finish(_FINISH_TIMEOUT)


async def _connected(connection: socket.socket) -> _Server:
    server = _Server()
    await asyncio.get_running_loop().create_connection(lambda: server.link, sock=connection)
    return server


def _watch(descriptor: int, signs: int, application: int, server: _Server, end: Callable[[], object]) -> None:
    """Give signs of life; say when the application is gone, and end the process if that is not heard."""
    poll = select.poll()
    poll.register(descriptor, 0)  # for nothing but the end of the connection
    while not poll.poll(_LOOK_AGAIN * 1000) and os.getppid() == application:
        if server.has_work:
            with contextlib.suppress(OSError):  # nobody has read them for hours, or the application has just ended
                os.write(signs, b".")
    os.dup2(_STDOUT, _STDERR)  # who reads what the application writes need not wait for us
    end()
    threading.Event().wait(server.time_to_work + _FINISH_TIMEOUT + 1)
    os._exit(1)


def _note_error(error: BaseException) -> None:
    _logger.warning("the helper ran into a %s", type(error).__name__)


class _Server:
    """Hands questions to the service and answers back."""

    def __init__(self) -> None:
        self.service: Service | None = None
        self.is_ended = False
        self.link = FramedProtocol(on_message=self._received, on_lost=self._lost)
        self._loop = asyncio.get_running_loop()
        self._has_read_all = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def time_to_work(self) -> float:
        """Seconds, see `Service`."""
        return 0.0 if self.service is None else self.service.time_to_work

    @property
    def has_work(self) -> bool:
        return bool(self._tasks)

    def end(self) -> None:
        if not self.is_ended:
            self.is_ended = True
            self._loop.stop()

    async def work(self, timeout: float) -> None:
        """Go on with what is in work, and with what the application wrote last."""
        if not timeout:
            return
        ends_at = self._loop.time() + timeout
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._has_read_all.wait(), _READ_TIMEOUT)
        while self._tasks and (left := ends_at - self._loop.time()) > 0:
            await asyncio.wait(self._tasks, timeout=left)

    def _lost(self) -> None:
        self._has_read_all.set()
        self.end()

    def _received(self, message: tuple[Any, ...]) -> None:
        kind, number, *payload = message
        task = self._loop.create_task(self._answer(kind, number, payload))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, kind: str, number: int, payload: list[Any]) -> None:
        message: tuple[Any, ...]
        try:
            message = ("answer", number, await self._answer_of(kind, number, payload))
        except BaseException as error:  # noqa: BLE001 - judges and metrics may be the user's
            message = ("refusal", number, f"{type(error).__name__}: {error}")
        if number:
            self.link.send(message)

    async def _answer_of(self, kind: str, number: int, payload: list[Any]) -> object:
        if kind == "serve":
            return serialization.FORMAT, self._begin(*payload).ready
        if self.service is None:
            raise RuntimeError("the helper was not told what to do")
        answer = self.service.handle(kind, number, payload)
        return None if answer is None else await answer

    def _begin(self, role: str, *arguments: Any) -> Service:
        logging.getLogger().addHandler(_ToApplication(self.link))
        services = importlib.import_module("ragspan.engine.helper.services")
        service: Service = getattr(services, _ROLES[role])(self.link, *arguments)
        self.service = service
        return service


class _ToApplication(logging.Handler):
    """Log records of the helper belong into the application's log."""

    def __init__(self, link: FramedProtocol) -> None:
        super().__init__(logging.WARNING)
        self._link = link
        self._loop = asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):  # a message that does not fit its arguments, a loop that is closed
            note = ("log", 0, record.name, record.levelno, record.getMessage())
            self._loop.call_soon_threadsafe(self._link.send, note)
