"""Asks a model for the parts of a reply, and again for what its replies lack.

Guarantees:
- Votes and ratings are the choices of the first request, where the endpoint gives several; else each is a short request of its own.
- A reply that cannot be read is asked for once more, and only what it lacks. An error of such a request costs nothing that is
  there already.
- Votes that cannot be read are not missing at random: a model may be unable to write one of the verdicts. If at least a third of
  them stay unreadable, the part has no answer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import msgspec

from ragspan.exceptions import JudgeError
from ragspan.judges.judge_protocols import Completion
from ragspan.judges.llm.parts import NumberedFinding, Part
from ragspan.judges.llm.replies import OTHER_JSON, read

_FURTHER_ROUNDS = 2
"""In the first of them polls are asked for that the endpoint did not give, in both what cannot be read."""
_MOST_TRIES = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One part of a reply about a record, as it is asked for."""

    part: Part
    polls: int = 1
    """Independent answers that are wanted."""
    numbers: Sequence[int] = ()
    """Of the claims or contexts, each of which needs a finding; none for other parts."""
    quoted: str = ""
    """What is quoted ahead of the task."""
    is_valid: Callable[[Any], bool] = lambda _: True


Send: TypeAlias = Callable[[Sequence[Question], int], Awaitable[list[Completion]]]
"""Sends a request with these questions, and gets up to so many choices."""


@dataclass(slots=True)
class _Poll:
    """One answer that is wanted."""

    unread: int = 0
    """Replies that could not be read."""
    is_done: bool = False
    has_failed: bool = False
    """A request for it ended with an error, so it is given up."""


@dataclass(slots=True)
class Answers:
    """What is known of one question."""

    question: Question
    found: list[Any] = field(default_factory=list)
    """Of all replies, one after the other."""
    second_tries: list[bool] = field(default_factory=list)
    """Whether the reply to the same poll before could not be read."""
    polls: list[_Poll] = field(default_factory=list)
    problem: str | None = None

    @property
    def open_polls(self) -> list[_Poll]:
        return [one for one in self.polls if not (one.is_done or one.has_failed) and one.unread < _MOST_TRIES]

    def missing(self) -> list[int]:
        """The numbers that have no finding."""
        known = {one.number for one in self.found} if self.question.numbers else ()
        return [number for number in self.question.numbers if number not in known]

    def take(self, poll: _Poll, completion: Completion, numbers: Sequence[int]) -> None:
        """Read what a reply says to the question, of which it was asked about these numbers."""
        found, problem = read(self.question.part, completion.text, numbers or None)
        found = [one for one in found if self.question.is_valid(one)]
        self.found += found if numbers else found[:1]
        self.second_tries += [poll.unread > 0] * len(found[:1])
        if found and not (numbers and self.missing()):
            poll.is_done = True
        elif not poll.is_done:
            poll.unread += 1
            self.problem = self.problem or completion.problem or problem

    def polled(self) -> list[tuple[Any, bool]]:
        """The answers, and whether each came with the second try.

        Raises:
            JudgeError: there is none, or at least a third could not be read (`InvalidVerdict`).
        """
        unread = sum(not poll.is_done and poll.unread > 0 for poll in self.polls)
        if not self.found:
            raise JudgeError("InvalidVerdict", self.problem or OTHER_JSON)
        if 3 * unread >= self.question.polls:
            message = f"{unread} of {self.question.polls} replies could not be read, also when asked for again"
            raise JudgeError("InvalidVerdict", f"{message}: {self.problem}")
        return list(zip(self.found, self.second_tries, strict=False))

    def numbered(self) -> list[tuple[int, Any]]:
        """One finding for each number that has any, with its index from 0; of several opinions the majority's.

        Raises:
            JudgeError: there is none at all (`InvalidVerdict`).
        """
        if self.question.numbers and not self.found:
            raise JudgeError("InvalidVerdict", self.problem or OTHER_JSON)
        by_number: dict[int, list[NumberedFinding]] = {}
        for finding in self.found:
            by_number.setdefault(finding.number, []).append(finding)
        return [(number - 1, majority(by_number[number])) for number in sorted(by_number)]


async def ask(questions: Sequence[Question], send: Send, *, choices: int) -> list[Answers]:
    """The answers to these questions, which the first request asks together.

    Args:
        questions: about one record.
        send: sends a request.
        choices: of the first request; each is one more opinion on what is asked once.

    Raises:
        JudgeError: the first request failed.
    """
    asked = [Answers(question, polls=[_Poll() for _ in range(question.polls)]) for question in questions]
    for place, completion in enumerate((await send(questions, choices))[:choices]):
        for answers in asked:
            if place < len(answers.polls) or len(answers.polls) == 1:
                answers.take(answers.polls[min(place, len(answers.polls) - 1)], completion, answers.question.numbers)

    async def further(request: Sequence[tuple[Answers, _Poll]]) -> None:
        narrowed = [replace(each.question, numbers=each.missing()) for each, _ in request]
        try:
            completions = await send(narrowed, 1)
        except JudgeError:  # it does not cost the answers that are already there
            for _, poll in request:
                poll.has_failed = True
            return
        for completion in completions[:1]:
            for (answers, poll), question in zip(request, narrowed, strict=True):
                answers.take(poll, completion, question.numbers)

    for _ in range(_FURTHER_ROUNDS):
        open_polls = [[(each, poll) for poll in each.open_polls] for each in asked]
        rows = range(max(map(len, open_polls), default=0))
        await asyncio.gather(*(further([polls[row] for polls in open_polls if row < len(polls)]) for row in rows))
    return asked


def majority(opinions: Sequence[Any], tie: str | None = None) -> Any:
    """The first opinion with the verdict that most have; of several such verdicts the tie's, or the first."""
    if not hasattr(opinions[0], "verdict"):
        return opinions[0]
    counts = Counter(one.verdict for one in opinions).most_common()
    leading = [verdict for verdict, count in counts if count == counts[0][1]]
    if len(leading) > 1 and tie is not None:
        return msgspec.structs.replace(opinions[0], verdict=tie)
    return next(one for one in opinions if one.verdict == leading[0])
