"""Keeps a helper at hand: starts one when it is first needed, replaces it when it dies, gives up when that is no use.

Guarantees:
- A question ends with an answer, or with `HelperLost`: helpers died over it, the last one while it was asked nothing else.
  Where there is no helper and will be none, `HelperUnavailable` says so before anything is asked.
- What was asked when a helper died is asked once more, one question at a time: what kills helpers takes no other
  question with it, and is known.
- A helper that dies is replaced when the next one is needed. One that keeps dying is not, and neither is one that cannot
  be started. The reason is logged. If what it was asked killed it, nobody is told to do that elsewhere: in the
  application it would kill the application.
- A helper that has said nothing for two minutes although it was asked is killed.

All of it runs in the worker's event loop, but for `let_go` and `leave_to_parent`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from ragspan.engine.helper import wire
from ragspan.engine.helper.connection import Helper, HelperLost, HelperRefusal
from ragspan.engine.helper.turns import Turns
from ragspan.throttled_log import ThrottledLog

_START_TIMEOUT = 30.0  # seconds until a new helper must have said that it is ready
_MAX_DEATHS = 5  # within
_DEATHS_WINDOW = 60.0  # seconds


class HelperUnavailable(Exception):  # noqa: N818 - a fact, which the one who asked deals with
    """There is no helper, and none will be started again."""


class HelperClient:
    """The helper of a worker, whichever it is at the moment.

    Args:
        greeting: what each new helper is to do: a role and its arguments.
        max_questions: that it has not answered, at the same time; at least 2.
        on_note: told of what a helper says unasked.
    """

    def __init__(
        self,
        greeting: Callable[[], tuple[Any, ...]],
        *,
        max_questions: int,
        log: ThrottledLog,
        on_note: Callable[[tuple[Any, ...]], None],
    ) -> None:
        self._greeting = greeting
        self._max_questions = max_questions
        self._on_note = on_note
        self._log = log
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turns = Turns(max_questions)
        self._current: Helper | None = None
        self._ready: asyncio.Task[Helper] | None = None
        self._recent_deaths: deque[float] = deque(maxlen=_MAX_DEATHS)
        self._is_hung_up = False
        self._is_given_up = False
        self._was_killed = False
        self.deaths = 0
        """Of helpers that were ready, since this client was made."""

    @property
    def pid(self) -> int | None:
        """Of the helper that there is."""
        helper = self._current
        return None if helper is None else helper.process.pid

    async def ask(self, kind: str, payload_for: Callable[[Helper], Iterable[Any]]) -> Any:
        """What the helper answers; starts one if there is none.

        Args:
            kind: of question.
            payload_for: makes the question's plain data right before it is sent, for the helper that it is sent to.

        Raises:
            HelperUnavailable: there can be no helper, and the question has harmed none.
            HelperLost: it may be what kills helpers.
            HelperRefusal: the helper could not do it; the message says why.
        """
        self._enter_loop()
        try:
            return await self._ask(kind, payload_for, places=1)
        except HelperLost:
            pass
        try:
            return await self._ask(kind, payload_for, places=self._turns.places)
        except HelperUnavailable:
            raise HelperLost from None

    async def ask_now(self, kind: str, *payload: Any) -> Any:
        """What the helper that there is answers, whatever else it was asked; None if there is none.

        Raises:
            HelperUnavailable: it could not be started.
            HelperLost: it died before.
            HelperRefusal: it could not do it.
        """
        if self._ready is None:
            return None
        helper = await asyncio.shield(self._ready)
        return await helper.ask(kind, *payload)

    def hang_up(self) -> None:
        """Close the connection, which ends the helper; in this event loop there will be no other."""
        self._is_hung_up = True
        if self._current is not None:
            self._current.hang_up()

    def let_go(self) -> None:
        """Wait for the helper that was hung up on to end; it is killed if that takes more than a second."""
        helper, self._current = self._current, None
        if helper is not None:
            helper.end()

    def leave_to_parent(self) -> None:
        """In the child of a fork: the helper is the parent's."""
        if self._current is not None:
            self._current.process.leave_to_parent()

    def _enter_loop(self) -> None:
        """A worker that died has a successor, with a loop of its own."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._turns = loop, Turns(self._max_questions)
            self._ready, self._is_hung_up = None, False

    async def _ask(self, kind: str, payload_for: Callable[[Helper], Iterable[Any]], *, places: int) -> Any:
        turns = self._turns
        try:
            await turns.take(places)
            give_back = functools.partial(turns.give_back, places)
            try:
                helper = await self._helper()
                payload = payload_for(helper)
            except BaseException:
                give_back()
                raise
            return await helper.ask(kind, *payload, on_end=give_back)
        except asyncio.CancelledError:  # the one who asked has no time left
            if self._current is not None:
                self._current.kill_if_silent()
            raise

    async def _helper(self) -> Helper:
        if self._is_given_up or self._is_hung_up:
            raise HelperLost if self._was_killed else HelperUnavailable
        if self._ready is None or self._ready.cancelled():
            self._ready = asyncio.get_running_loop().create_task(self._start())
        return await asyncio.shield(self._ready)

    async def _start(self) -> Helper:
        helper: Helper | None = None
        try:
            helper = self._current = Helper(on_note=self._on_note, on_lost=self._lost)
            await helper.connect()
            format_there = await asyncio.wait_for(helper.ask("serve", *self._greeting()), _START_TIMEOUT)
            if format_there != wire.FORMAT:
                raise HelperRefusal("another version of ragspan has been installed since this process began")  # noqa: TRY301
        except asyncio.CancelledError:  # the worker ends, or a metric cancels whatever it finds
            self._current = None
            if helper is not None:
                helper.end(0.0)
            raise
        except Exception as error:  # noqa: BLE001 - of the system, of its start, of ours
            self._current = None
            status = None if helper is None else helper.end()
            self._give_up(f"it cannot be started: {_reason(error, status)}")
            raise HelperUnavailable from None
        return helper

    def _lost(self, helper: Helper) -> None:
        is_ready = self._ready is not None and self._ready.done()
        if helper is not self._current or not is_ready or self._is_hung_up:
            return
        self._current = self._ready = None
        self.deaths += 1
        helper.end()
        if self._turns.is_one_alone:
            self._was_killed = True
            return
        now = time.monotonic()
        self._recent_deaths.append(now)
        if len(self._recent_deaths) == _MAX_DEATHS and now - self._recent_deaths[0] < _DEATHS_WINDOW:
            self._give_up(f"it died {_MAX_DEATHS} times within {now - self._recent_deaths[0]:.0f} s")
        else:
            self._log.trouble("helper", "the helper process ended unexpectedly; another one takes its place")

    def _give_up(self, reason: str) -> None:
        self._is_given_up = True
        consequence = "its work is left undone" if self._was_killed else "its work is done in the application"
        self._log.trouble("no helper", "there is no helper process, %s: %s", consequence, reason)


def log_note(note: tuple[Any, ...]) -> None:
    """A log record of the helper's, into the application's log."""
    if note[0] == "log":
        _, _, name, level, text = note
        with contextlib.suppress(Exception):  # a handler of the application's
            logging.getLogger(name).log(level, "%s", text)


def _reason(error: Exception, status: int | None) -> str:
    if isinstance(error, HelperLost):
        return f"it ended at once, with the status {status}"
    if isinstance(error, asyncio.TimeoutError):
        return f"it was not ready within {_START_TIMEOUT:.0f} s"
    return str(error) or type(error).__name__
