"""The helper's own program: it scores records by copies of the application's metrics until the application is gone.

Signals for the application (Ctrl-C, a service manager's SIGTERM) are ignored: it may need its helper until its own end.
An error in an answer is the answer. What judges log goes to the application's stderr. Both sides speak msgpack, each message
behind its length.
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
import struct
import threading
from collections.abc import AsyncIterator

import msgspec

from ragspan.engine.threads import call_guarded
from ragspan.judges.session import JudgingSession, judging
from ragspan.metrics.metric import Metric
from ragspan.records import RagRecord
from ragspan.telemetry.otel_context import suppressed

_PRIORITY = 5  # of 19: requests come first where processors are short
_GC_THRESHOLD = 10_000  # objects
_LOOK_AGAIN = 1000  # milliseconds between looks for the application
_RECENT = 64  # records whose metrics share a session
_LENGTH = struct.Struct(">Q")


class Message(msgspec.Struct, array_like=True):
    """A question to the helper, or its answer to the question of the same number; one without content takes the question back.

    The first, number 0, holds all metrics, pickled together, so that they share a judge there as they do here.
    """

    number: int
    content: bytes = b""
    """Of a question the record as JSON, of an answer what is known of the response, and the outcome, pickled."""
    metric: int = 0
    session: int = 0
    """The same for all metrics of one record that is being scored."""
    refusal: str | None = None
    """Why there is no answer."""


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
        self._tasks: dict[int, asyncio.Task[bytes]] = {}

    def take(self, question: Message) -> None:
        number = question.number
        if not number:
            metrics, error = call_guarded(pickle.loads, question.content)  # from the application, whose helper this is
            self._metrics = metrics or []
            gc.freeze()  # what is there now stays, and a record leaves no cycles: the collector finds next to nothing
            gc.set_threshold(_GC_THRESHOLD)
            self._answer(number, b"", error)
        elif question.content:
            task = self._tasks[number] = asyncio.get_running_loop().create_task(self._score(question))
            task.add_done_callback(lambda task: self._answer(number, *call_guarded(task.result)))
        elif (scoring := self._tasks.get(number)) is not None:
            scoring.cancel()

    async def _score(self, question: Message) -> bytes:
        from ragspan.engine.metric_outcome import about_response, outcome_of

        record, session = _session_of(question.session, question.content)
        with suppressed(), judging(session):
            outcome = await outcome_of(self._metrics[question.metric].score, record)
        return pickle.dumps((session.get_or_make("about", lambda: about_response(record)), outcome))

    def _answer(self, number: int, content: bytes | None, error: BaseException | None) -> None:
        self._tasks.pop(number, None)
        refusal = None if error is None else f"{type(error).__name__}: {error}"
        send(self._writer, Message(number, content or b"", refusal=refusal))


@functools.lru_cache(_RECENT)
def _session_of(number: int, packed: bytes) -> tuple[RagRecord, JudgingSession]:  # noqa: ARG001 - one for each time that a record is scored
    record: RagRecord = msgspec.json.decode(packed, type=RagRecord)  # ours: no limits are checked
    return record, JudgingSession(record=record)
