"""The helper's own program: it scores records by copies of the application's metrics until the application is gone.

Signals for the application (Ctrl-C, a service manager's SIGTERM) are ignored: it may need its helper until its own end.
An error in an answer is the answer. What judges log goes to the application's stderr.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import os
import pickle
import select
import signal
import socket
import threading
from typing import NoReturn

from ragspan.engine.helper.messages import Connection, ToApplication, ToHelper, unpack
from ragspan.engine.threads import call_guarded
from ragspan.judges.session import JudgingSession, judging
from ragspan.metrics.metric import Metric
from ragspan.records import RagRecord
from ragspan.telemetry.otel_context import suppressed

_PRIORITY = 5  # of 19: requests come first where processors are short
_GC_THRESHOLD = 10_000  # objects
_LOOK_AGAIN = 1000  # milliseconds between looks for the application
_RECENT = 64  # records whose metrics share a session


def main(descriptor: int, application: int) -> None:
    """Serve on this socket until its other end is closed or the process of this number is gone, and end the process."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(_PRIORITY)
    threading.Thread(target=_end_with, args=(application, os.dup(descriptor)), daemon=True).start()
    asyncio.run(_serve(socket.socket(fileno=descriptor)))


def _end_with(application: int, descriptor: int) -> NoReturn:
    """End this process when the application is gone. Tasks and threads of models may hang."""
    poll = select.poll()
    poll.register(descriptor, 0)  # for nothing but the end of the connection
    while not poll.poll(_LOOK_AGAIN) and os.getppid() == application:
        pass
    os._exit(0)


async def _serve(connection: socket.socket) -> None:
    server = _Server()
    await asyncio.get_running_loop().create_connection(lambda: server.connection, sock=connection)
    await asyncio.Event().wait()


class _Server:
    """Answers the questions."""

    def __init__(self) -> None:
        self._metrics: list[Metric] = []
        self._tasks: dict[int, asyncio.Task[bytes]] = {}
        self.connection = Connection(ToHelper, on_message=self._received, on_lost=lambda: os._exit(0))

    def _received(self, message: ToHelper) -> None:
        if not message.number:
            metrics, error = call_guarded(pickle.loads, message.content)  # from the application, whose helper this is
            self._metrics = metrics or []
            gc.freeze()  # what is there now stays, and a record leaves no cycles: the collector finds next to nothing
            gc.set_threshold(_GC_THRESHOLD)
            self.connection.send(ToApplication(0, refusal=_said(error)))
        elif message.content:
            task = self._tasks[message.number] = asyncio.get_running_loop().create_task(self._score(message))
            task.add_done_callback(functools.partial(self._answer, message.number))
        elif (scoring := self._tasks.get(message.number)) is not None:
            scoring.cancel()

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
        self.connection.send(ToApplication(number, b"" if error else task.result(), _said(error)))


def _said(error: BaseException | None) -> str | None:
    return f"{type(error).__name__}: {error}" if error is not None else None


@functools.lru_cache(_RECENT)
def _session_of(number: int, record: bytes) -> tuple[RagRecord, JudgingSession]:  # noqa: ARG001 - one for each time that a record is scored
    unpacked = unpack(record)
    return unpacked, JudgingSession(record=unpacked)
