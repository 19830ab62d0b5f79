"""The helper's own program: it scores records by copies of the application's metrics until the application is gone.

Signals for the application (Ctrl-C, a service manager's SIGTERM) are ignored: it may need its helper until its own end.
An error in an answer is the answer. What judges log goes to the application's stderr. Both sides speak msgpack, each message
behind its length.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import pickle
import select
import signal
import socket
import struct
import threading
from collections.abc import AsyncIterator

import msgspec

from ragspan.engine.threads import call_guarded
from ragspan.judges.session import JudgingSession, judging
from ragspan.metrics.metric import Metric
from ragspan.outcomes import MetricFailure
from ragspan.records import RagRecord
from ragspan.telemetry.otel_context import suppressed

_PRIORITY = 5  # of 19: requests come first where processors are short
_GC_THRESHOLD = 10_000  # objects
_LOOK_AGAIN = 1000  # milliseconds between looks for the application
_LENGTH = struct.Struct(">Q")


class Message(msgspec.Struct, array_like=True):
    """A question to the helper, or an answer to the question of the same number; one without content takes the question back.

    The first, number 0, holds all metrics, pickled together, so that they share a judge there as they do here.
    """

    number: int
    content: bytes = b""
    """Of a question: the record, as JSON."""
    metrics: tuple[int, ...] = ()
    """Of a question: what scores the record."""
    outcomes: dict[int, bytes] = {}
    """Of an answer, pickled: of the metrics that have ended together, by their numbers."""
    about: tuple[bool, str | None] = (False, None)
    """What is known of the response."""
    refusal: str | None = None
    """Why it cannot score."""


_decode = msgspec.msgpack.Decoder(Message).decode


async def messages_of(reader: asyncio.StreamReader) -> AsyncIterator[Message]:
    """What the other side sends, until the connection has ended."""
    with contextlib.suppress(asyncio.IncompleteReadError, OSError):
        while True:
            (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
            yield _decode(await reader.readexactly(size))


def send(writer: asyncio.StreamWriter, message: Message) -> None:
    """Send it without waiting; nothing happens if the connection is lost."""
    if not writer.is_closing():
        data = msgspec.msgpack.encode(message)
        writer.write(_LENGTH.pack(len(data)) + data)


def main(descriptor: int, application: int) -> None:
    """Serve on this socket until its other end is closed or the process of this number is gone, and end the process."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(_PRIORITY)
    ours = socket.socket(fileno=descriptor)

    def end_with_application() -> None:  # in a thread: tasks and threads of models may hang
        poll = select.poll()
        poll.register(descriptor, 0)  # for nothing but the end of the connection
        while not poll.poll(_LOOK_AGAIN) and os.getppid() == application:
            pass
        os._exit(0)

    async def serve() -> None:
        reader, writer = await asyncio.open_connection(sock=ours)
        server = _Server(writer)
        async for question in messages_of(reader):
            server.take(question)
        os._exit(0)

    threading.Thread(target=end_with_application, daemon=True).start()
    asyncio.run(serve())


class _Server:
    """Answers the questions."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._metrics: list[Metric] = []
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def take(self, question: Message) -> None:
        number = question.number
        if not number:
            metrics, error = call_guarded(pickle.loads, question.content)  # from the application, whose helper this is
            self._metrics = metrics or []
            gc.freeze()  # what is there now stays, and a record leaves no cycles: the collector finds next to nothing
            gc.set_threshold(_GC_THRESHOLD)
            refusal = None if error is None else f"{type(error).__name__}: {error}"
            send(self._writer, Message(number, refusal=refusal))
        elif question.content:
            task = self._tasks[number] = asyncio.get_running_loop().create_task(self._score(question))
            task.add_done_callback(lambda task: self._end(question, task))
        elif (scoring := self._tasks.get(number)) is not None:
            scoring.cancel()

    async def _score(self, question: Message) -> None:
        """Send outcomes as they come: those of metrics that wait for nothing in one message."""
        from ragspan.engine.metric_outcome import about_response

        record: RagRecord = msgspec.json.decode(question.content, type=RagRecord)  # ours: no limits are checked
        session, loop = JudgingSession(record=record), asyncio.get_running_loop()
        with suppressed(), judging(session):
            left = {loop.create_task(_pickled_outcome(self._metrics[one], record)): one for one in question.metrics}
        try:
            while left:
                ended, _ = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
                outcomes = {left.pop(task): task.result() for task in ended}
                about = session.get_or_make("about", lambda: about_response(record))
                send(self._writer, Message(question.number, outcomes=outcomes, about=about))
        finally:
            for task in left:
                task.cancel()

    def _end(self, question: Message, task: asyncio.Task[None]) -> None:
        self._tasks.pop(question.number, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            send(self._writer, Message(question.number, outcomes=dict.fromkeys(question.metrics, _refusal(error))))


async def _pickled_outcome(metric: Metric, record: RagRecord) -> bytes:
    from ragspan.engine.metric_outcome import outcome_of

    pickled, error = call_guarded(pickle.dumps, await outcome_of(metric.score, record))
    return pickled or _refusal(error)


def _refusal(error: BaseException | None) -> bytes:
    return pickle.dumps(MetricFailure(error_type="helper_refused", message=f"{type(error).__name__}: {error}"))
