"""Asks a question about a record once, whoever needs the answer.

Several metrics need the same claims and the same verdicts on passages, and most of them ask at the same time.

Guarantees:
- Those who ask while the answer is on its way wait for it; those who ask later get it at once. It is reported to the
  usage meter of the first.
- Who stops waiting takes nothing from the others. The question is given up when nobody waits any more.
- An error goes to all who wait and is not kept: who asks later asks anew. That the allowance of the first does not
  suffice concerns the first alone; the others ask for themselves.
- It works across event loops, threads and forks without a lock, which a fork could leave held for ever. A race, or a
  loop that ends while others wait for what it asked, costs one more request.
- Bounded: the oldest answers are forgotten first.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from ragspan.exceptions import BudgetExhausted

_T = TypeVar("_T")
_Key: TypeAlias = tuple[str, str]

_MAX_ANSWERS = 128


class Once:
    """The answers to questions that were asked lately.

    Args:
        max_answers: how many are kept.
    """

    def __init__(self, max_answers: int = _MAX_ANSWERS) -> None:
        self._max_answers = max_answers
        self._asked: dict[_Key, _Asked[Any]] = {}

    def __len__(self) -> int:
        return len(self._asked)

    def __reduce__(self) -> tuple[type[Once], tuple[int]]:
        return Once, (self._max_answers,)  # what this process asked is no business of another

    async def ask(self, case: str, question: str, asking: Callable[[], Awaitable[_T]]) -> _T:
        """What `asking` returns, now or when it was last called for this question about this case.

        Args:
            case: the same for the same texts, and for no others.
            question: which of the questions about them.
            asking: asks it.

        Raises:
            JudgeError: as `asking`.
        """
        key = (case, question)
        while True:
            asked, is_mine = self._join(key)
            if is_mine:
                asked.start(asking, on_failure=partial(self._forget, key, asked))
            try:
                answer: _T = await asked.wait()
            except _GivenUp:
                continue
            except BudgetExhausted:
                if is_mine:
                    raise
            else:
                return answer

    def _join(self, key: _Key) -> tuple[_Asked[Any], bool]:
        """Who asks this, and whether that is the caller from here on."""
        known = self._asked.get(key)
        if known is not None and known.is_lost:
            self._forget(key, known)
        own: _Asked[Any] = _Asked(asyncio.get_running_loop())
        asked = self._asked.setdefault(key, own)
        for oldest in list(self._asked)[: -self._max_answers]:
            self._asked.pop(oldest, None)
        return asked, asked is own

    def _forget(self, key: _Key, asked: _Asked[Any]) -> None:
        if self._asked.get(key) is asked:
            self._asked.pop(key, None)


class _GivenUp(Exception):  # noqa: N818 - it tells of an end, not of a mistake
    """Nobody waited for the answer any more, or the loop that it was asked in has ended."""


class _Asked(Generic[_T]):
    """A question on its way, or its answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pid = os.getpid()
        self._task: asyncio.Task[None] | None = None
        self._waiting: set[object] = set()
        self._answer: Future[_T] = Future()
        self._answer.set_running_or_notify_cancel()  # from now on nobody who waits can cancel it

    @property
    def is_lost(self) -> bool:
        """There will never be an answer: its loop has ended without a word, or runs in the parent of a fork."""
        return not self._answer.done() and (self._loop.is_closed() or self._pid != os.getpid())

    def start(self, asking: Callable[[], Awaitable[_T]], *, on_failure: Callable[[], None]) -> None:
        """Ask in a task of its own, in the context of whoever asks first: its meter and its allowance."""
        self._task = self._loop.create_task(self._ask(asking, on_failure))

    async def wait(self) -> _T:
        waiting = object()
        self._waiting.add(waiting)
        try:
            return await asyncio.wrap_future(self._answer)
        finally:
            self._waiting.discard(waiting)
            if not self._waiting and not self._answer.done():
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    self._loop.call_soon_threadsafe(self._give_up)

    def _give_up(self) -> None:
        if self._task is not None and not self._waiting:
            self._task.cancel()

    async def _ask(self, asking: Callable[[], Awaitable[_T]], on_failure: Callable[[], None]) -> None:
        try:
            answer = await asking()
        except BaseException as error:
            on_failure()  # before those who wait are told, so that none of them finds this question again
            self._answer.set_exception(_GivenUp() if isinstance(error, asyncio.CancelledError) else error)
            if not isinstance(error, Exception):
                raise
        else:
            self._answer.set_result(answer)
