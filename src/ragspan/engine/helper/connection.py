"""One helper, from its start to its end, and the questions that it was asked.

Guarantees:
- A helper that has something to answer and gives no sign of life for 15 seconds is killed: its process is stopped, or
  something in it lets no other thread run. So is one that is not ready 30 seconds after its start, and one that has
  answered nothing for two minutes, as soon as somebody has waited in vain.
- Messages are tuples of plain data and arrive in the order in which they were sent. What is sent within one turn of the event
  loop goes as one batch. Sending never blocks; the engine's `concurrency` bounds what the socket does not take at once.
- These are seconds in which the application runs, too: what stops both of them, such as a frozen container, is no sign of
  a helper that hangs.
"""

from __future__ import annotations

import asyncio
import itertools
import pickle
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from ragspan.config import process_environment
from ragspan.engine.helper.process import HelperProcess

_TICK = 1.0  # seconds between looks for signs of life
_MAX_START = 30  # ticks until a new helper must have said that it is ready
_MAX_LIFELESS = 15  # ticks without a sign of life; the helper gives one a second
_MAX_SILENCE = 120  # ticks without an answer; loading a classifier's model takes a while
_END_TIMEOUT = 1.0  # seconds
_LENGTH = struct.Struct(">Q")
_PROTOCOL = 5  # of pickle
_MAX_WAIT = 0.005  # seconds


class HelperLost(Exception):  # noqa: N818 - a fact, which the one who asked deals with
    """The helper died before it answered."""


class HelperRefusal(Exception):  # noqa: N818 - likewise
    """The helper could not do what it was asked; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Question:
    answer: asyncio.Future[Any]
    on_part: Callable[..., None]
    on_end: Callable[[], None]


class Helper:
    """A helper process at the other end of a connection.

    Args:
        on_note: told of what it says unasked.
        on_lost: told once, when it has died or hung up.

    Raises:
        OSError: see `HelperProcess`, which also names the other errors.
    """

    def __init__(self, *, on_note: Callable[[tuple[Any, ...]], None], on_lost: Callable[[Helper], None]) -> None:
        self._on_note = on_note
        self._on_lost = on_lost
        self._numbers = itertools.count(1)
        self._open: dict[int, _Question] = {}
        self._lifeless = 0
        self._silent = 0
        self._ticking: asyncio.TimerHandle | None = None
        self._is_ready = False
        self._is_lost = False
        self.is_hung = False
        """It was killed because it did not answer."""
        self._loop = asyncio.get_running_loop()
        self._link = FramedProtocol(on_message=self._heard, on_lost=self._lost)
        self.process = HelperProcess(process_environment())

    async def connect(self) -> None:
        await self._loop.create_connection(lambda: self._link, sock=self.process.socket)

    def ask(
        self,
        kind: str,
        *payload: Any,
        on_part: Callable[..., None] = lambda *_: None,
        on_end: Callable[[], None] = lambda: None,
    ) -> asyncio.Future[Any]:
        """The answer to come; else `HelperLost`, or a `HelperRefusal`.

        Args:
            kind: of question.
            payload: plain data.
            on_part: called with what it says before it answers.
            on_end: called when it is answered, or never will be, whether or not somebody still waits for it.
        """
        answer = self._loop.create_future()
        question = _Question(answer=answer, on_part=on_part, on_end=on_end)
        if self._is_lost:
            _give_up(question)
            return answer
        if self._ticking is None:
            self._lifeless = self._silent = 0
            self._ticking = self._loop.call_later(_TICK, self._tick)
        number = next(self._numbers)
        self._open[number] = question
        self._link.send((kind, number, *payload))
        return answer

    @property
    def is_asked(self) -> bool:
        """Whether it has something to answer."""
        return bool(self._open)

    def send(self, kind: str, *payload: Any) -> None:
        """Say something that has no answer."""
        if not self._is_lost:
            self._link.send((kind, 0, *payload))

    def kill_if_silent(self) -> None:
        """Kill it if it was asked something and has answered nothing for two minutes."""
        if self._open and self._silent >= _MAX_SILENCE:
            self._kill()

    def close(self) -> None:
        """Close the connection, which ends the helper."""
        self._link.close()

    def end(self, timeout: float = _END_TIMEOUT) -> int | None:
        """Hang up, wait for it to end, kill it if that takes too long; its exit status."""
        self.close()
        return self.process.end(timeout)

    def _tick(self) -> None:
        self._ticking = None
        if self._is_lost or not self._open:
            return
        self._silent += 1
        self._lifeless = 0 if self._is_ready and self.process.shows_life() else self._lifeless + 1
        if self._lifeless >= (_MAX_LIFELESS if self._is_ready else _MAX_START):
            self._kill()
        else:
            self._ticking = self._loop.call_later(_TICK, self._tick)

    def _kill(self) -> None:
        self.is_hung = True
        self.process.kill()
        self.close()  # in case that it has children, which keep its end of the socket open

    def _heard(self, message: tuple[Any, ...]) -> None:
        self._is_ready = True
        self._lifeless = self._silent = 0
        kind, number, *content = message
        if kind == "part":
            if number in self._open:
                self._open[number].on_part(*content)
            return
        question = self._open.pop(number, None)
        if question is None:
            self._on_note(message)
            return
        if not question.answer.done():
            if kind == "answer":
                question.answer.set_result(content[0])
            else:
                question.answer.set_exception(HelperRefusal(content[0]))
        question.on_end()

    def _lost(self) -> None:
        self._is_lost = True
        questions, self._open = [*self._open.values()], {}
        self._on_lost(self)  # first of all, so that those who ask again ask another one
        for question in questions:
            _give_up(question)


def _give_up(question: _Question) -> None:
    if not question.answer.done():
        question.answer.set_exception(HelperLost())
    question.on_end()


class FramedProtocol(asyncio.Protocol):
    """One end of the connection. For use in its event loop only.

    Args:
        on_message: called with each message.
        on_lost: called when there is no connection any more.
    """

    def __init__(self, *, on_message: Callable[[tuple[Any, ...]], None], on_lost: Callable[[], None]) -> None:
        self._on_message = on_message
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._outgoing: list[tuple[Any, ...]] = []
        self._began = 0.0
        self._incoming = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def send(self, message: tuple[Any, ...]) -> None:
        """Send it with this turn's batch; to nobody, if the connection is lost."""
        self._outgoing.append(message)
        if len(self._outgoing) == 1:
            self._began = self._loop.time()
            self._loop.call_soon(self._send_batch)
        elif self._loop.time() - self._began > _MAX_WAIT:
            self._send_batch()

    def close(self) -> None:
        """End the connection at once, whatever has not been sent."""
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
            for message in pickle.loads(batch):  # noqa: S301 - nobody else holds the socket
                self._on_message(message)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        self._on_lost()

    def _send_batch(self) -> None:
        if not self._outgoing:
            return
        batch, self._outgoing = self._outgoing, []
        if self._transport is None or self._transport.is_closing():
            return
        data = pickle.dumps(batch, _PROTOCOL)
        self._transport.write(_LENGTH.pack(len(data)) + data)
