"""The helper's own program: it scores records by copies of the application's metrics until the application is gone.

Guarantees:
- It ends when the application does, however that ends and whatever hangs here. It also ends when it has had no question for a quarter of
  an hour: the next one starts another.
- Signals for the application (Ctrl-C, a service manager's SIGTERM) are ignored: the application ends its helper, and may
  need it until its own end.
- An error in an answer is the answer. Log records go to the application's log.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import logging
import os
import pickle
import select
import signal
import socket
import threading
import traceback
from typing import NoReturn

from ragspan.engine.helper.messages import FORMAT, Connection, ToApplication, ToHelper, unpack
from ragspan.engine.threads import DaemonThreads, WorkerLoop, call_guarded
from ragspan.judges.session import JudgingSession, judging
from ragspan.metrics.metric import Metric
from ragspan.records import RagRecord
from ragspan.telemetry.otel_context import suppressed

_PRIORITY = 5  # of 19: requests come first where processors are short
_IO_THREADS = 32
_LONGEST_IDLE = 900.0  # seconds
_GC_THRESHOLD = 10_000  # objects
_LOOK_AGAIN = 1.0  # seconds between looks for the application
_RECENT = 64  # records whose metrics share a session

_logger = logging.getLogger("ragspan")


def main(descriptor: int, application: int) -> NoReturn:
    """Serve on this socket until its other end is closed or the process of this number is gone, and end the process."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(_PRIORITY)
    try:
        connection = socket.socket(fileno=descriptor)
        watch = functools.partial(_end_with, application, os.dup(descriptor))
        threading.Thread(target=watch, name="ragspan-watch", daemon=True).start()
        loop = WorkerLoop(threads=DaemonThreads(_IO_THREADS, name="ragspan-io"), on_error=_note_error)
        server = loop.run_until_complete(_connected(connection))
        while server is not None:  # a metric can stop the loop
            _, error = call_guarded(loop.run_forever)
            if error is not None:
                _note_error(error)
    except BaseException:  # noqa: BLE001 - a mistake of ours, which nothing else would show
        traceback.print_exc()
    os._exit(1)


async def _connected(connection: socket.socket) -> _Server:
    server = _Server()
    await asyncio.get_running_loop().create_connection(lambda: server.connection, sock=connection)
    return server


def _end_with(application: int, descriptor: int) -> NoReturn:
    """End this process when the application is gone. Tasks and threads of models may hang."""
    poll = select.poll()
    poll.register(descriptor, 0)  # for nothing but the end of the connection
    while not poll.poll(_LOOK_AGAIN * 1000) and os.getppid() == application:
        pass
    os._exit(0)


def _note_error(error: BaseException) -> None:
    _logger.warning("the helper ran into a %s", type(error).__name__)


def _refusal(number: int, error: BaseException) -> ToApplication:
    return ToApplication(kind="refusal", number=number, text=f"{type(error).__name__}: {error}")


class _Server:
    """Answers the questions."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._metrics: list[Metric] = []
        self._tasks: dict[int, asyncio.Task[bytes]] = {}
        self._idle: asyncio.TimerHandle | None = None
        self.connection = Connection(ToHelper, on_message=self._received, on_lost=lambda: os._exit(0))

    def _received(self, message: ToHelper) -> None:
        if message.kind == "cancel":
            if (task := self._tasks.get(message.number)) is not None:
                task.cancel()
        elif message.kind == "metrics":
            _, error = call_guarded(self._begin, message.content)
            self.connection.send(_refusal(0, error) if error else ToApplication(kind="ready", text=FORMAT))
        else:
            task = self._tasks[message.number] = self._loop.create_task(self._score(message))
            task.add_done_callback(functools.partial(self._answer, message.number))
            if self._idle is not None:
                self._idle.cancel()
            self._idle = self._loop.call_later(_LONGEST_IDLE, self._end_if_idle)

    def _begin(self, metrics: bytes) -> None:
        logging.getLogger().addHandler(_ToApplication(self.connection))
        self._metrics = pickle.loads(metrics)  # noqa: S301 - from the application, whose helper this is
        gc.freeze()  # what is there now stays, and a record leaves no cycles: the collector finds next to nothing
        gc.set_threshold(_GC_THRESHOLD)

    async def _score(self, question: ToHelper) -> bytes:
        from ragspan.engine.metric_outcome import about_response, outcome_of

        record, session = _session_of(question.session, question.content)
        with suppressed(), judging(session):
            outcome = await outcome_of(self._metrics[question.metric].score, record)
        about = session.get_or_make("about", lambda: call_guarded(about_response, record)[0])
        return pickle.dumps((about, outcome))

    def _answer(self, number: int, task: asyncio.Task[bytes]) -> None:
        del self._tasks[number]
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        answer = (
            _refusal(number, error) if error else ToApplication(kind="answer", number=number, content=task.result())
        )
        self.connection.send(answer)

    def _end_if_idle(self) -> None:
        if not self._tasks:
            os._exit(0)


@functools.lru_cache(_RECENT)
def _session_of(number: int, record: bytes) -> tuple[RagRecord, JudgingSession]:  # noqa: ARG001 - one for each time that a record is scored
    unpacked = unpack(record)
    return unpacked, JudgingSession(record=unpacked)


class _ToApplication(logging.Handler):
    """Sends the helper's log records to the application."""

    def __init__(self, connection: Connection[ToHelper]) -> None:
        super().__init__(logging.WARNING)
        self._connection = connection
        self._loop = asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):  # a message that does not fit its arguments
            line = ToApplication(kind="log", number=record.levelno, text=record.getMessage(), logger=record.name)
            self._loop.call_soon_threadsafe(self._connection.send, line)
