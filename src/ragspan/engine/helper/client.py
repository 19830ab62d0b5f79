"""Keeps one helper running: starts it when it is first needed, and another one when it dies or hangs.

Guarantees:
- A question ends with an answer, or with `HelperLost`: two helpers died while they had it, the second one while it had
  nothing else to score. `HelperUnavailable` means that there is no helper now, and that the question harmed none.
- The questions of a helper that dies are asked again one by one. So a question that kills helpers takes no other question
  with it, and only this one is lost. A helper that hangs is killed (see `connection`), and counts as dead.
- A helper that dies is replaced when the next one is needed. After a failed start, and while helpers keep dying, there is
  a pause before the next start: it doubles each time, up to a minute. The reason is logged. The application does the work
  meanwhile, unless a question has killed helpers: it might kill the application. Then questions wait for the next helper,
  as they always do where it is the only place for the work.
- A helper that gets no question for ten to twenty minutes ends, unless it is the only place.

All of it runs in the worker's thread, except `ask_from_outside`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import math
import time
from collections.abc import Callable
from typing import Any

from ragspan.backoff import Backoff
from ragspan.engine.helper import serialization
from ragspan.engine.helper.connection import Helper, HelperLost, HelperRefusal, Message
from ragspan.engine.threads import call_guarded
from ragspan.throttled_log import ThrottledLog

_MAX_START = 30.0  # seconds until a new helper must be ready
_MAX_DEATHS = 5  # in a row, of helpers that lived shorter than
_LONG_LIFE = 60.0  # seconds
_FIRST_PAUSE = 1.0  # seconds
_LONGEST_PAUSE = 60.0  # seconds
_LOOK_FOR_QUESTIONS = 600.0  # seconds


class HelperUnavailable(Exception):  # noqa: N818 - a fact for the caller, not a mistake
    """There is no helper now."""


class HelperClient:
    """The helper of a worker.

    Args:
        service: makes the name of the `services` member that a new helper runs, and its arguments.
        max_questions: open at the same time, at least 2.
        on_error: called with a name for each error in a helper, and with `helper` for each helper that died.
        is_only_place: whether nobody else does the work. Then questions wait for the next helper, and a helper without
            questions goes on, because it keeps what they need, such as a budget.
    """

    def __init__(
        self,
        service: Callable[[], tuple[Any, ...]],
        *,
        max_questions: int,
        log: ThrottledLog,
        on_error: Callable[[str], object] = lambda _: None,
        is_only_place: bool = False,
    ) -> None:
        self._service = service
        self._max_questions = max_questions
        self._on_error = on_error
        self._is_only_place = is_only_place
        self._log = log
        self._loop: asyncio.AbstractEventLoop | None = None
        self._door = asyncio.Lock()
        """Questions pass it in their order. One that is asked alone holds it until it is answered."""
        self._current: Helper | None = None
        self._ready: asyncio.Task[Helper] | None = None
        self._ready_at = -math.inf
        self._pause = Backoff(first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
        self._deaths_in_a_row = 0
        self._is_one_alone = False
        self._was_killed = False
        """A question killed a helper, and no helper has lived long since."""
        self._is_closed = False
        self.deaths = 0
        """Of helpers that were ready."""

    @property
    def pid(self) -> int | None:
        helper = self._current
        return None if helper is None else helper.process.pid

    async def ask(self, kind: str, *payload: Any) -> Any:
        """The helper's answer; starts a helper if there is none.

        Raises:
            HelperUnavailable: there is no helper now, and the question has harmed none.
            HelperLost: the question may be what kills helpers.
            HelperRefusal: the helper could not do it; the message says why.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # of a worker whose loop broke
            self._loop, self._door, self._is_closed = loop, asyncio.Lock(), False
        try:
            async with self._door:
                helper = await self._helper(self._max_questions)
            return await helper.ask(kind, *payload)
        except HelperLost:
            pass
        while not self._is_closed:
            with contextlib.suppress(HelperUnavailable):
                async with self._door:
                    return await self._ask_alone(kind, *payload)
            await asyncio.sleep(self._pause.remaining)  # never elsewhere: it may kill the application
        raise HelperLost

    def ask_from_outside(self, kind: str, *payload: Any) -> concurrent.futures.Future[Any] | None:
        """Ask the present helper from another thread than the worker's, whatever else it has to do.

        The future raises what `ask` raises. None if there is no helper, or in the worker's thread, which must not wait for
        itself.
        """
        loop, ready = self._loop, self._ready
        if loop is None or ready is None or call_guarded(asyncio.get_running_loop)[0] is loop:
            return None

        async def ask() -> Any:
            helper = await asyncio.shield(ready)
            return await helper.ask(kind, *payload)

        asking = ask()
        try:
            return asyncio.run_coroutine_threadsafe(asking, loop)
        except RuntimeError:  # the loop has just been closed, and its helper ended
            asking.close()
            return None

    def close(self) -> None:
        """End the helper; it is killed if that takes more than a second. This event loop gets no other one."""
        helper, self._current, self._ready, self._is_closed = self._current, None, None, True
        if helper is not None:
            helper.end()

    async def _ask_alone(self, kind: str, *payload: Any) -> Any:
        helper = await self._helper(1)
        self._is_one_alone = True
        try:
            return await helper.ask(kind, *payload)
        finally:
            self._is_one_alone = False

    async def _helper(self, max_questions: int) -> Helper:
        """The helper as soon as it has fewer open questions than this."""
        while not self._is_closed:
            if self._ready is not None and not self._ready.cancelled():
                with contextlib.suppress(HelperUnavailable):  # its start failed: there is a pause now
                    helper = await asyncio.shield(self._ready)
                    if len(helper.open_questions) < max_questions:
                        return helper
                    await helper.wait_for_progress()
            elif not (pause := self._pause.remaining):
                self._ready = asyncio.get_running_loop().create_task(self._start())
            elif self._has_to_wait:
                await asyncio.sleep(pause)
            else:
                break
        raise HelperUnavailable

    async def _start(self) -> Helper:
        helper: Helper | None = None
        try:
            helper = self._current = Helper(on_note=self._noted, on_lost=self._lost)
            await helper.connect()
            answer = await asyncio.wait_for(helper.ask("serve", *self._service()), _MAX_START)
            if answer != serialization.FORMAT:
                raise HelperRefusal("another version of ragspan has been installed since this process began")  # noqa: TRY301
        except asyncio.CancelledError:  # the worker ends, or a metric cancels all tasks
            self._current = None
            if helper is not None:
                helper.end(0.0)
            raise
        except Exception as error:  # noqa: BLE001 - of the system, of its start, of ours
            self._current = self._ready = None
            status = None if helper is None else helper.end()
            self._begin_pause(f"it cannot be started: {_reason(error, status)}")
            raise HelperUnavailable from None
        self._ready_at = time.monotonic()
        if not self._is_only_place:
            self._end_if_idle(helper, asked=0)
        return helper

    @property
    def _has_to_wait(self) -> bool:
        return self._is_only_place or self._was_killed

    def _lost(self, helper: Helper) -> None:
        is_ready = self._ready is not None and self._ready.done()
        if helper is not self._current or not is_ready or self._is_closed:
            return
        self._current = self._ready = None
        self.deaths += 1
        self._on_error("helper")
        helper.end()
        if time.monotonic() - self._ready_at > _LONG_LIFE:
            self._pause.succeeded()
            self._deaths_in_a_row, self._was_killed = 0, False
        if self._is_one_alone:
            self._was_killed = True
            return
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row >= _MAX_DEATHS:
            self._begin_pause(f"it died {self._deaths_in_a_row} times in a row")
        else:
            how = "hung" if helper.is_hung else "ended unexpectedly"
            self._log.report("helper", "the helper process %s; another one takes its place", how)

    def _noted(self, note: Message) -> None:
        """Counts the helper's errors, and puts its log records into the application's log."""
        kind, _, *content = note
        if kind == "error":
            self._on_error(*content)
        elif kind == "log":
            name, level, text = content
            with contextlib.suppress(Exception):  # a handler of the application's
                logging.getLogger(name).log(level, "%s", text)

    def _begin_pause(self, reason: str) -> None:
        self._pause.refused()
        consequence = "its work waits" if self._has_to_wait else "its work is done in the application"
        message = "there is no helper process, %s: %s; the next start is in %.0f s"
        self._log.report("no helper", message, consequence, reason, self._pause.remaining)

    def _end_if_idle(self, helper: Helper, asked: int) -> None:
        """End the helper if it got no question since the last look. The next question starts another one."""
        loop = asyncio.get_running_loop()
        if helper is not self._current:
            return
        if helper.asked != asked or helper.open_questions:
            loop.call_later(_LOOK_FOR_QUESTIONS, self._end_if_idle, helper, helper.asked)
            return
        self._current = self._ready = None
        helper.close()
        loop.run_in_executor(None, helper.end)


def _reason(error: Exception, status: int | None) -> str:
    if isinstance(error, asyncio.TimeoutError):
        return "it was not ready in time"
    if isinstance(error, HelperLost):
        return f"it ended at once, with the status {status}"
    return str(error) or type(error).__name__
