"""One helper process, from its start to its end, and the questions that it has not answered.

Guarantees:
- A helper that has had questions and answered nothing for two minutes is killed when a question is given up.
- Messages arrive in the order in which they were sent. Messages of one turn of the event loop go as one batch. Sending
  never blocks; `HelperClient` limits how many questions are open.
"""

from __future__ import annotations

import asyncio
import pickle
import struct
from collections.abc import Callable
from typing import Any, TypeAlias, cast

from ragspan.engine.helper.helper_process import HelperProcess

Message: TypeAlias = tuple[Any, ...]
"""A kind, the number of a question or 0, and plain data."""

_MAX_SILENCE = 120.0  # seconds without an answer; loading a classifier's model takes a while
_END_TIMEOUT = 1.0  # seconds
_LENGTH = struct.Struct(">Q")


class HelperLost(Exception):  # noqa: N818 - a fact for the caller, not a mistake
    """The helper died before it answered."""


class HelperRefusal(Exception):  # noqa: N818 - likewise
    """The helper could not answer the question; the message says why."""


class Helper:
    """A helper process at the other end of a connection.

    Args:
        on_note: called with each message that answers no question.
        on_lost: called once, when the helper has died or closed the connection.

    Raises:
        OSError: the process cannot be started; see `HelperProcess`, which names the other errors.
    """

    def __init__(self, *, on_note: Callable[[Message], None], on_lost: Callable[[Helper], None]) -> None:
        self._on_note = on_note
        self._on_lost = on_lost
        self._progress = asyncio.Event()
        self._silent_since = 0.0
        self._is_lost = False
        self._loop = asyncio.get_running_loop()
        self._link = FramedProtocol(on_message=self._received, on_lost=self._lost)
        self.open_questions: dict[int, asyncio.Future[Any]] = {}
        """Those without an answer, including those for which nobody waits any more."""
        self.asked = 0
        """Questions so far."""
        self.is_hung = False
        """It was killed because it gave no answer."""
        self.process = HelperProcess()

    async def connect(self) -> None:
        await self._loop.create_connection(lambda: self._link, sock=self.process.socket)

    async def wait_for_progress(self) -> None:
        """Return when a question is answered, or the helper is lost."""
        self._progress.clear()
        await self._progress.wait()

    async def ask(self, kind: str, *payload: Any) -> Any:
        """Send a question at once and return its answer. If this is cancelled, the helper cancels its work on it.

        Raises:
            HelperLost: the helper died before it answered.
            HelperRefusal: the helper could not do it.
        """
        if self._is_lost:
            raise HelperLost
        if not self.open_questions:
            self._silent_since = self._loop.time()
        self.asked = number = self.asked + 1
        answer = self.open_questions[number] = self._loop.create_future()
        self._link.send((kind, number, *payload))
        try:
            return await answer
        except asyncio.CancelledError:
            self._link.send(("cancel", 0, number))
            if self._loop.time() - self._silent_since >= _MAX_SILENCE:
                self.is_hung = True
                self.process.kill()
                self.close()  # its children, if it has any, may keep its end of the socket open
            raise

    def close(self) -> None:
        """Close the connection, which ends the helper."""
        self._link.close()

    def end(self, timeout: float = _END_TIMEOUT) -> int | None:
        """Close the connection, wait for the helper to end, kill it when the time is over; its exit status."""
        self.close()
        return self.process.end(timeout)

    def _received(self, message: Message) -> None:
        self._silent_since = self._loop.time()
        kind, number, *content = message
        if not number:
            self._on_note(message)
            return
        answer = self.open_questions.pop(number)
        self._progress.set()
        if answer.done():  # cancelled
            return
        if kind == "answer":
            answer.set_result(content[0])
        else:
            answer.set_exception(HelperRefusal(content[0]))

    def _lost(self) -> None:
        self._is_lost = True
        self._on_lost(self)  # before the questions end, so that they are asked again elsewhere
        self._progress.set()
        for answer in self.open_questions.values():
            if not answer.done():
                answer.set_exception(HelperLost())
        self.open_questions.clear()


class FramedProtocol(asyncio.Protocol):
    """One end of the connection, for use in its event loop only. What it sends is a length and a pickled list of messages.

    Args:
        on_message: called with each message.
        on_lost: called when the connection has ended.
    """

    def __init__(self, *, on_message: Callable[[Message], None], on_lost: Callable[[], None]) -> None:
        self._on_message = on_message
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._outgoing: list[Message] = []
        self._incoming = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def send(self, message: Message) -> None:
        """Send it with this turn's batch. If the connection is lost, nothing happens."""
        self._outgoing.append(message)
        if len(self._outgoing) == 1:
            self._loop.call_soon(self._send_batch)

    def close(self) -> None:
        """End the connection at once; messages that are not sent yet are lost."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._incoming += data
        while len(self._incoming) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._incoming)[0]
            if len(self._incoming) < end:
                return
            batch = bytes(memoryview(self._incoming)[_LENGTH.size : end])
            del self._incoming[:end]
            for message in pickle.loads(batch):  # noqa: S301 - nobody else has the socket
                self._on_message(message)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        self._on_lost()

    def _send_batch(self) -> None:
        batch, self._outgoing = self._outgoing, []
        if self._transport is not None and not self._transport.is_closing():
            data = pickle.dumps(batch)
            self._transport.write(_LENGTH.pack(len(data)) + data)
