"""Keeps a helper at hand: starts one when it is first needed, replaces it when it dies, gives up when that is no use.

Guarantees:
- A question ends with an answer, or with `HelperLost` (the helper died over it). Where there is no helper and will be
  none, `HelperUnavailable` says so before anything is asked. Whoever asks decides what to do then.
- A helper that dies is replaced when the next one is needed. One that keeps dying is not, and neither is one that cannot
  be started. The reason is logged.
- A helper that has said nothing for two minutes although it was asked is killed.

All of it runs in the worker's event loop, but for `leave_to_parent`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from ragspan.config import process_environment
from ragspan.engine.helper import wire
from ragspan.engine.helper.link import Link
from ragspan.engine.helper.process import HelperProcess
from ragspan.throttled_log import ThrottledLog

_START_TIMEOUT = 30.0  # seconds until a new helper must have said that it is ready
_MAX_SILENCE = 120.0  # seconds; loading a classifier's model takes a while
_MAX_DEATHS = 5  # within
_DEATHS_WINDOW = 60.0  # seconds
_END_TIMEOUT = 1.0  # seconds


class HelperLost(Exception):  # noqa: N818 - a fact, which the one who asked deals with
    """The helper died before it answered."""


class HelperUnavailable(Exception):  # noqa: N818 - likewise
    """There is no helper, and none will be started again."""


class HelperRefusal(Exception):  # noqa: N818 - likewise
    """The helper could not do what it was asked; the message says why."""


class Helper:
    """One helper, and what it was asked and has not answered."""

    def __init__(self, *, on_note: Callable[[tuple[Any, ...]], None], on_lost: Callable[[Helper], None]) -> None:
        self._on_note = on_note
        self._on_lost = on_lost
        self._numbers = itertools.count(1)
        self._expected: dict[int, asyncio.Future[Any]] = {}
        self._heard_at = time.monotonic()
        self._is_lost = False
        self._link = Link(encode=wire.dumps, decode=wire.loads, on_message=self._heard, on_lost=self._lost)
        self.process = HelperProcess(process_environment())

    async def connect(self) -> None:
        await asyncio.get_running_loop().create_connection(lambda: self._link, sock=self.process.socket)

    async def ask(self, kind: str, *payload: Any) -> Any:
        """What it answers.

        Raises:
            HelperLost: it died before.
            HelperRefusal: it could not do it.
        """
        if self._is_lost:
            raise HelperLost
        if not self._expected:
            self._heard_at = time.monotonic()
        number = next(self._numbers)
        answer = self._expected[number] = asyncio.get_running_loop().create_future()
        self._link.send((kind, number, *payload))
        try:
            return await answer
        except asyncio.CancelledError:  # the one who asked has no time left
            if time.monotonic() - self._heard_at > _MAX_SILENCE:
                self.process.kill()
            raise

    def tell(self, kind: str, *payload: Any) -> None:
        """Say something that has no answer."""
        if not self._is_lost:
            self._link.send((kind, 0, *payload))

    def hang_up(self) -> None:
        self._link.close()

    def _heard(self, message: tuple[Any, ...]) -> None:
        self._heard_at = time.monotonic()
        kind, number, *content = message
        if kind not in {"answer", "refusal"}:
            self._on_note(message)
            return
        answer = self._expected.pop(number, None)
        if answer is None or answer.done():
            return
        if kind == "answer":
            answer.set_result(content[0])
        else:
            answer.set_exception(HelperRefusal(content[0]))

    def _lost(self) -> None:
        self._is_lost = True
        for answer in self._expected.values():
            if not answer.done():
                answer.set_exception(HelperLost())
        self._expected.clear()
        self._on_lost(self)


class HelperClient:
    """The helper of a worker, whichever it is at the moment.

    Args:
        greeting: what each new helper is to do: a role and its arguments.
        on_note: told of what a helper says unasked.
    """

    def __init__(
        self,
        greeting: Callable[[], tuple[Any, ...]],
        *,
        log: ThrottledLog,
        on_note: Callable[[tuple[Any, ...]], None],
    ) -> None:
        self._greeting = greeting
        self._on_note = on_note
        self._log = log
        self._current: Helper | None = None
        self._ready: asyncio.Task[Helper] | None = None
        self._deaths: deque[float] = deque(maxlen=_MAX_DEATHS)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_hung_up = False
        self.is_given_up = False
        """There is no helper, and none will be started again."""

    @property
    def pid(self) -> int | None:
        """Of the helper that there is."""
        return None if self._current is None else self._current.process.pid

    async def helper(self) -> Helper:
        """The helper of the moment; starts one if there is none.

        Raises:
            HelperUnavailable: there can be none.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # a worker that died has a successor
            self._loop, self._ready, self._is_hung_up = loop, None, False
        if self.is_given_up or self._is_hung_up:
            raise HelperUnavailable
        if self._ready is None:
            self._ready = loop.create_task(self._start())
        return await asyncio.shield(self._ready)

    def tell(self, kind: str, *payload: Any) -> None:
        """Say something that has no answer, if there is a helper to hear it."""
        if self._current is not None:
            self._current.tell(kind, *payload)

    def hang_up(self) -> None:
        """Close the connection, which ends the helper; in this event loop there will be no other."""
        self._is_hung_up = True
        if self._current is not None:
            self._current.hang_up()

    def let_go(self) -> None:
        """Wait for the helper that was hung up on to end; it is killed if that takes more than a second."""
        helper, self._current = self._current, None
        if helper is not None:
            helper.process.end(_END_TIMEOUT)

    def leave_to_parent(self) -> None:
        """In the child of a fork: the helper is the parent's."""
        if self._current is not None:
            self._current.process.leave_to_parent()

    async def _start(self) -> Helper:
        helper = None
        try:
            helper = self._current = Helper(on_note=self._on_note, on_lost=self._lost)
            await helper.connect()
            format_there = await asyncio.wait_for(helper.ask("serve", *self._greeting()), _START_TIMEOUT)
            if format_there != wire.FORMAT:
                raise HelperRefusal("another version of ragspan has been installed since this process began")  # noqa: TRY301
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - of the system, of its start, of ours
            self._current = None
            if helper is not None:
                helper.hang_up()
                helper.process.end(0.0)
            reason = str(error) or type(error).__name__
            self._give_up(f"it cannot be started: {reason}")
            raise HelperUnavailable from None
        return helper

    def _lost(self, helper: Helper) -> None:
        is_ready = self._ready is not None and self._ready.done()
        if helper is not self._current or not is_ready or self._is_hung_up:
            return
        self._current = self._ready = None
        helper.process.end(_END_TIMEOUT)
        now = time.monotonic()
        self._deaths.append(now)
        if len(self._deaths) == _MAX_DEATHS and now - self._deaths[0] < _DEATHS_WINDOW:
            self._give_up(f"it died {_MAX_DEATHS} times within {now - self._deaths[0]:.0f} s")
        else:
            self._log.trouble("helper", "the helper process ended unexpectedly; another one takes its place")

    def _give_up(self, reason: str) -> None:
        self.is_given_up = True
        self._log.trouble("helper", "there is no helper process, its work is done in the application: %s", reason)


def log_note(note: tuple[Any, ...]) -> None:
    """A log record of the helper's, into the application's log."""
    if note[0] == "log":
        _, _, name, level, text = note
        with contextlib.suppress(Exception):  # a handler of the application's
            logging.getLogger(name).log(level, "%s", text)
