"""Polls a judge, all at once or in two steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ragspan.exceptions import JudgeError

_T = TypeVar("_T")

_FEWEST_SAMPLES = 2
"""A single vote is a judge's best guess; from two on they are independent samples, which is what a poll counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll(Generic[_T]):
    """What a poll brought."""

    asked: int
    """Votes or ratings that were asked for, at most as many as were to be had."""
    valid: list[_T]

    def has_quorum(self, polls: int) -> bool:
        """Whether more than half of what was to be had is there."""
        return 2 * len(self.valid) > polls


async def poll_at_once(
    ask: Callable[[int], Awaitable[list[_T]]], polls: int, *, is_valid: Callable[[_T], bool]
) -> Poll[_T]:
    """All votes or ratings together, which is one request where an endpoint gives several choices."""
    answers = filter(is_valid, await ask(polls))
    return Poll(asked=polls, valid=list(answers)[:polls])


async def poll_until_settled(
    ask: Callable[[int], Awaitable[list[_T]]],
    polls: int,
    *,
    is_valid: Callable[[_T], bool],
    is_settled: Callable[[Sequence[_T]], bool],
) -> Poll[_T]:
    """A bare majority first, and the rest only if that leaves anything open.

    A judge that fails in the second step costs nothing of the first, if that has a quorum.
    """
    first = await poll_at_once(ask, polls // 2 + 1, is_valid=is_valid)
    if first.asked >= polls or (first.has_quorum(polls) and is_settled(first.valid)):
        return first
    rest = polls - first.asked
    try:
        second = await poll_at_once(ask, max(rest, _FEWEST_SAMPLES), is_valid=is_valid)
    except JudgeError:
        if not first.has_quorum(polls):
            raise
        return first
    return Poll(asked=polls, valid=(first.valid + second.valid)[:polls])
