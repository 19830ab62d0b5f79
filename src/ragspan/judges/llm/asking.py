"""Asks a model for the parts of a reply, and again for what its replies lack.

Votes and ratings are the choices of the first request, where the endpoint gives several; else each is a short request of its own. A reply
that cannot be read is asked for once more, and only what it lacks; an error of such a request costs nothing that is there already.
Votes that cannot be read are not missing at random: a model may be unable to write one of the verdicts. If at least a third of
them stay unreadable, the part has no answer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import msgspec

from ragspan.exceptions import BudgetExhausted, JudgeError
from ragspan.judges.judge_protocols import Completion
from ragspan.judges.llm.parts import Part
from ragspan.judges.llm.replies import OTHER_JSON, read

_T = TypeVar("_T")
_FURTHER_ROUNDS = 2
"""In the first of them polls are asked for that the endpoint did not give, in both what cannot be read."""
_MOST_TRIES = 2


@dataclass(slots=True, eq=False)
class _Poll:
    """One answer that is wanted."""

    unread: int = 0
    """Requests to which no reply could be read."""
    is_done: bool = False


@dataclass(kw_only=True, slots=True, eq=False)
class Question:
    """One part of a reply about a record, as it is asked for, and what is known of it."""

    part: Part
    wanted: int = 1
    """Independent answers."""
    numbers: Sequence[int] = ()
    """Of the claims or contexts, each of which needs a finding; none for other parts."""
    quoted: str = ""
    """What is quoted ahead of the task."""
    found: list[Any] = field(default_factory=list)
    """Of all replies, one after the other."""
    polls: list[_Poll] = field(default_factory=list)
    """Without those that were given up, because a request for them ended with an error."""
    problem: str | None = None

    def __post_init__(self) -> None:
        self.polls = [_Poll() for _ in range(self.wanted)]

    def missing(self) -> list[int]:
        """The numbers that have no finding."""
        known = {one.number for one in self.found} if self.numbers else ()
        return [number for number in self.numbers if number not in known]

    def take(self, poll: _Poll, completion: Completion, numbers: Sequence[int], *, tries: int) -> None:
        """Read what a reply says to the question, of which it was asked about these numbers; `tries` requests have asked it."""
        found, problem = read(self.part, completion.text, numbers or None)
        self.found += found if numbers else found[:1]
        if found and not (numbers and self.missing()):
            poll.is_done = True
        elif not poll.is_done:
            poll.unread = tries
            self.problem = self.problem or completion.problem or problem

    def polled(self) -> list[Any]:
        """The answers.

        Raises:
            JudgeError: there is none, or at least a third could not be read (`InvalidVerdict`).
        """
        unread = sum(not poll.is_done and poll.unread > 0 for poll in self.polls)
        if not self.found:
            raise JudgeError("InvalidVerdict", self.problem or OTHER_JSON)
        if 3 * unread >= self.wanted:
            message = f"{unread} of {self.wanted} replies could not be read, also when asked for again"
            raise JudgeError("InvalidVerdict", f"{message}: {self.problem}")
        return self.found

    def numbered(self) -> list[tuple[int, Any]]:
        """One finding for each number that has any, with its index from 0; of several opinions the majority's.

        Raises:
            JudgeError: there is none at all (`InvalidVerdict`).
        """
        if self.numbers and not self.found:
            raise JudgeError("InvalidVerdict", self.problem or OTHER_JSON)
        by_number: dict[int, list[Any]] = {}
        for finding in self.found:
            by_number.setdefault(finding.number, []).append(finding)
        return [(number - 1, majority(by_number[number])) for number in sorted(by_number)]


Wanted: TypeAlias = Sequence[tuple[Question, Sequence[int]]]
"""Questions, each with the numbers that still need a finding."""
Send: TypeAlias = Callable[[Wanted, int], Awaitable[list[Completion]]]
"""Sends a request with these questions, and gets up to so many choices."""


async def ask(questions: Sequence[Question], send: Send, *, choices: int) -> None:
    """Fill in the answers to these questions about one record, which the first request asks together.

    Each choice of that is one more opinion on what is asked once. Raises `JudgeError` if the first request failed.
    """
    completions = await send([(question, question.numbers) for question in questions], choices)
    for place, completion in enumerate(completions[:choices]):
        for question in questions:
            if place < question.wanted or question.wanted == 1:
                question.take(question.polls[min(place, question.wanted - 1)], completion, question.numbers, tries=1)

    async def further(request: Sequence[tuple[Question, _Poll]]) -> None:
        wanted = [(question, question.missing()) for question, _ in request]
        try:
            completions = await send(wanted, 1)
        except JudgeError:  # it does not cost the answers that are already there
            for question, poll in request:
                question.polls.remove(poll)
            return
        for completion in completions[:1]:
            for (question, poll), (_, numbers) in zip(request, wanted, strict=True):
                question.take(poll, completion, numbers, tries=poll.unread + 1)

    for _ in range(_FURTHER_ROUNDS):
        still_open = [
            [(question, poll) for poll in question.polls if not poll.is_done and poll.unread < _MOST_TRIES]
            for question in questions
        ]
        rows = range(max(map(len, still_open), default=0))
        await asyncio.gather(*(further([polls[row] for polls in still_open if row < len(polls)]) for row in rows))


def majority(opinions: Sequence[Any], tie: str | None = None) -> Any:
    """The first opinion with the verdict that most have; of several such verdicts the tie's, or the first."""
    if not hasattr(opinions[0], "verdict"):
        return opinions[0]
    counts = Counter(one.verdict for one in opinions).most_common()
    leading = [verdict for verdict, count in counts if count == counts[0][1]]
    if len(leading) > 1 and tie is not None:
        return msgspec.structs.replace(opinions[0], verdict=tie)
    return next(one for one in opinions if one.verdict == leading[0])


class AskedOnce:
    """Asks each question once, however many callers need the answer. For one record and one event loop.

    Callers that come before the answer wait for it. The usage is on the first caller's meter. An error is that of all who wait; whoever
    comes later asks again. A cancellation, or a denial by the caller's own allowance, is that caller's alone: the next one asks.
    """

    def __init__(self) -> None:
        self._answers: dict[Hashable, Any] = {}
        self._errors: dict[Hashable, JudgeError] = {}
        self._turns: dict[Hashable, asyncio.Lock] = {}

    async def ask(self, question: Hashable, asking: Callable[[], Awaitable[_T]]) -> _T:
        """What `asking` returns, called now or earlier for this question."""
        earlier = self._errors.get(question)
        async with self._turns.setdefault(question, asyncio.Lock()):
            if question not in self._answers:
                error = self._errors.get(question)
                if error is not None and error is not earlier:
                    raise error
                try:
                    self._answers[question] = await asking()
                except JudgeError as failed:
                    if not isinstance(failed, BudgetExhausted):
                        self._errors[question] = failed
                    raise
            found: _T = self._answers[question]
            return found
