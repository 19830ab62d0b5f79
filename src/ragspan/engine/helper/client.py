"""Keeps a helper at hand: starts one when it is first needed, and another one when that dies or hangs.

Guarantees:
- A question ends with an answer, or with `HelperLost`: helpers died over it, the last one while it was asked nothing else.
  Where there is no helper now, and the work can be done without, `HelperUnavailable` says so before anything is asked.
- What was asked when a helper died is asked once more, one question at a time: what kills helpers takes no other
  question with it, and is known. A helper that hangs is killed (see `connection`), which is a death like any other.
- A helper that dies is replaced when the next one is needed. After a start that failed, and while helpers keep dying,
  there is a pause before the next start, twice as long each time and a minute at most: no helper is given up for good.
  The reason is logged. If what it was asked killed it, nobody is told to do that elsewhere, where it would kill the
  application: questions wait for the next helper then.
- The parent of a fork that does not use its helper any more, such as the master of a server, soon has none.

All of it runs in the worker's event loop, but for `close`, `after_fork_in_child` and `rest_if_idle`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from ragspan.backoff import backoff
from ragspan.engine.helper import serialization
from ragspan.engine.helper.connection import Helper, HelperLost, HelperRefusal
from ragspan.forks import watch_forks
from ragspan.throttled_log import ThrottledLog

_MAX_DEATHS = 5  # within
_DEATHS_WINDOW = 60.0  # seconds; a helper that lived as long shows that helpers can
_FIRST_PAUSE = 1.0  # seconds
_LONGEST_PAUSE = 60.0  # seconds
_IDLE_AFTER_FORK = 10.0  # seconds
_FAREWELL = 6.0  # seconds for a helper to send what it holds, and to end


class FairSemaphore:
    """So many places, of which one question takes one, and one that is asked alone takes all. First come, first served.

    A place is held until the answer comes, not until nobody waits for it any more: so what a helper that answers nothing was
    sent has a bound. For use in one event loop.
    """

    def __init__(self, places: int) -> None:
        self.places = places
        self.is_one_alone = False
        """One question has all places."""
        self._free = places
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, places: int) -> None:
        """Return when there is room, and it is taken."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((places, turn))
        self._let_in()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._let_in()  # those behind it may fit where it did not
            else:
                self.give_back(places)
            raise

    def give_back(self, places: int) -> None:
        self._free += places
        self.is_one_alone = False
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting:
            places, turn = self._waiting[0]
            if not turn.done():
                if places > self._free:
                    return
                self._free -= places
                self.is_one_alone = places == self.places
                turn.set_result(None)
            self._waiting.popleft()


class HelperUnavailable(Exception):  # noqa: N818 - a fact, which the one who asked deals with
    """There is no helper for the moment."""


class HelperClient:
    """The helper of a worker, whichever it is at the moment.

    Args:
        init_message: what each new helper is to do: a role and its arguments.
        max_questions: that it has not answered, at the same time; at least 2.
        on_error: told of what went wrong in a helper, or with it, by place.
        on_ready: told what each new helper answers to the first message.
        can_do_without: whether there is another way to do what it is asked; else questions wait for the next helper.
    """

    def __init__(
        self,
        init_message: Callable[[], tuple[Any, ...]],
        *,
        max_questions: int,
        log: ThrottledLog,
        on_error: Callable[[str], None] = lambda _: None,
        on_ready: Callable[[Any], None] = lambda _: None,
        can_do_without: Callable[[], bool] = lambda: True,
    ) -> None:
        self._init_message = init_message
        self._max_questions = max_questions
        self._on_error = on_error
        self._on_ready = on_ready
        self._log = log
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turns = FairSemaphore(max_questions)
        self._current: Helper | None = None
        self._ready: asyncio.Task[Helper] | None = None
        self._can_do_without = can_do_without
        self._recent_deaths: deque[float] = deque(maxlen=_MAX_DEATHS)
        self._pauses = 0
        self._next_start_at = self._ready_at = -math.inf
        self._asked = 0
        self._is_closed = False
        self._was_killed = False
        self.deaths = 0
        """Of helpers that were ready, since this client was made."""
        watch_forks(self, HelperClient.after_fork_in_child, after_in_parent=HelperClient.rest_if_idle)

    @property
    def pid(self) -> int | None:
        """Of the helper that there is."""
        helper = self._current
        return None if helper is None else helper.process.pid

    async def ask(
        self, kind: str, payload_for: Callable[[Helper], Iterable[Any]], on_part: Callable[..., None] = lambda *_: None
    ) -> Any:
        """What the helper answers; starts one if there is none.

        Args:
            kind: of question.
            payload_for: makes the question's plain data right before it is sent, for the helper that it is sent to.
            on_part: called with what the helper says before it answers.

        Raises:
            HelperUnavailable: there is no helper now, and the question has harmed none.
            HelperLost: it may be what kills helpers.
            HelperRefusal: the helper could not do it; the message says why.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # a worker that died has a successor, with a loop of its own
            self._loop, self._turns = loop, FairSemaphore(self._max_questions)
            self._ready, self._is_closed = None, False
        self._asked += 1
        try:
            return await self._ask(kind, payload_for, on_part, places=1)
        except HelperLost:
            pass
        while not self._is_closed:
            with contextlib.suppress(HelperUnavailable):
                return await self._ask(kind, payload_for, on_part, places=self._turns.places)
            await asyncio.sleep(self._pause_left)  # it may be what kills helpers, so it is for another helper only
        raise HelperLost

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

    def close(self) -> None:
        """End the helper; in this event loop there will be no other. It is killed if that takes more than a second."""
        self._is_closed = True
        helper, self._current = self._current, None
        if helper is not None:
            helper.end()

    def after_fork_in_child(self) -> None:
        """In the child of a fork: the helper is the parent's."""
        self._loop = None
        if self._current is not None:
            self._current.process.after_fork_in_child()

    @property
    def _pause_left(self) -> float:
        """Seconds until a helper may be started."""
        return max(0.0, self._next_start_at - time.monotonic())

    async def _ask(
        self,
        kind: str,
        payload_for: Callable[[Helper], Iterable[Any]],
        on_part: Callable[..., None],
        *,
        places: int,
    ) -> Any:
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
            return await helper.ask(kind, *payload, on_part=on_part, on_end=give_back)
        except asyncio.CancelledError:  # the one who asked has no time left
            if self._current is not None:
                self._current.kill_if_silent()
            raise

    async def _helper(self) -> Helper:
        while not self._is_closed:
            if self._ready is not None and not self._ready.cancelled():
                with contextlib.suppress(HelperUnavailable):  # there is a pause now
                    return await asyncio.shield(self._ready)
            elif not (pause := self._pause_left):
                self._ready = asyncio.get_running_loop().create_task(self._start())
            elif self._can_do_without() and not self._was_killed:
                break
            else:
                await asyncio.sleep(pause)
        raise HelperUnavailable

    async def _start(self) -> Helper:
        helper: Helper | None = None
        try:
            helper = self._current = Helper(on_note=self._noted, on_lost=self._lost)
            await helper.connect()
            known_format, answer = await helper.ask("serve", *self._init_message())
            if known_format != serialization.FORMAT:
                raise HelperRefusal("another version of ragspan has been installed since this process began")  # noqa: TRY301
            self._on_ready(answer)
        except asyncio.CancelledError:  # the worker ends, or a metric cancels whatever it finds
            self._current = None
            if helper is not None:
                helper.end(0.0)
            raise
        except Exception as error:  # noqa: BLE001 - of the system, of its start, of ours
            self._current = self._ready = None
            status = None if helper is None else helper.end()
            self._pause(f"it cannot be started: {_reason(error, helper, status)}")
            raise HelperUnavailable from None
        self._ready_at = time.monotonic()
        return helper

    def _lost(self, helper: Helper) -> None:
        is_ready = self._ready is not None and self._ready.done()
        if helper is not self._current or not is_ready or self._is_closed:
            return
        self._current = self._ready = None
        self.deaths += 1
        self._on_error("helper")
        helper.end()
        now = time.monotonic()
        if now - self._ready_at > _DEATHS_WINDOW:
            self._pauses, self._was_killed = 0, False
        if self._turns.is_one_alone:
            self._was_killed = True
            return
        self._recent_deaths.append(now)
        if len(self._recent_deaths) == _MAX_DEATHS and now - self._recent_deaths[0] < _DEATHS_WINDOW:
            self._pause(f"it died {_MAX_DEATHS} times within {now - self._recent_deaths[0]:.0f} s")
        else:
            how = "hung" if helper.is_hung else "ended unexpectedly"
            self._log.trouble("helper", "the helper process %s; another one takes its place", how)

    def _noted(self, note: tuple[Any, ...]) -> None:
        """What a helper says unasked: what went wrong there, and its log records, for the application's log."""
        kind, _, *content = note
        if kind == "wrong":
            self._on_error(*content)
        elif kind == "log":
            name, level, text = content
            with contextlib.suppress(Exception):  # a handler of the application's
                logging.getLogger(name).log(level, "%s", text)

    def _pause(self, reason: str) -> None:
        """Start no helper for a while."""
        self._pauses += 1
        # Without chance: helpers share nothing that they could all come back to at once.
        pause = backoff(self._pauses, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE, draw=lambda: 0.0)
        self._next_start_at = time.monotonic() + pause
        is_done = self._can_do_without() and not self._was_killed
        consequence = "its work is done in the application" if is_done else "its work waits"
        message = "there is no helper process, %s: %s; the next start is in %.0f s"
        self._log.trouble("no helper", message, consequence, reason, pause)

    def rest_if_idle(self) -> None:
        """End the helper if it is asked nothing in the next seconds; the next question starts another one."""
        loop = self._loop
        if loop is not None and self._current is not None:
            with contextlib.suppress(RuntimeError):  # closed in the meantime
                loop.call_soon_threadsafe(loop.call_later, _IDLE_AFTER_FORK, self._rest, self._asked)

    def _rest(self, asked: int) -> None:
        helper = self._current
        if helper is None or self._asked != asked or helper.is_asked or self._ready is None or not self._ready.done():
            return
        self._current = self._ready = None
        helper.close()
        asyncio.get_running_loop().run_in_executor(None, helper.end, _FAREWELL)


def _reason(error: Exception, helper: Helper | None, status: int | None) -> str:
    if helper is not None and helper.is_hung:
        return "it was not ready in time"
    if isinstance(error, HelperLost):
        return f"it ended at once, with the status {status}"
    return str(error) or type(error).__name__
