"""Asks a model one or several questions about a record, and again for what its replies lack.

Who calls whom: each metric asks the judge its own question. The metrics of a record have told the `JudgingSession` before what they
will ask, so the judge puts all of it into one `Questionnaire` with the first of these questions, and the others find their answers
there. A judge in thorough mode makes a `Questionnaire` for each question.

Guarantees:
- Votes and ratings are the choices of the first request, where the endpoint gives several; else each is a short request of its own.
- A reply that cannot be read is asked for once more, and only what it lacks. An error of such a request costs nothing that is
  there already.
- Votes that cannot be read are not missing at random: a model may be unable to write one of the verdicts. If at least a third of
  them stay unreadable, the question has no answer.
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
from ragspan.judges.llm.replies import OTHER_JSON, Form, NumberedFinding

_FURTHER_ROUNDS = 2
"""In the first of them polls are asked for that the endpoint did not give, in both what cannot be read."""
_MOST_TRIES = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One question about a record."""

    form: Form[Any]
    polls: int = 1
    """Independent answers that are wanted."""
    numbers: Sequence[int] = ()
    """Of the claims or contexts, each of which needs a finding; none for other questions."""
    task: Callable[[Sequence[int]], str] = lambda _: ""
    """In words, where the question is asked by itself; made of the numbers."""
    quoted: str = ""
    """What is quoted ahead of the task, where the question is asked with others."""
    about: str = ""
    """What a question that a metric brings is about."""
    menu: Sequence[str] = ()
    """Its verdicts."""
    is_valid: Callable[[Any], bool] = lambda _: True

    def read(self, text: str, remark: str | None) -> list[Any]:
        found = self.form.read(text, remark, numbers=self.numbers or None)
        return [one for one in found if self.is_valid(one)]


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

    @property
    def is_open(self) -> bool:
        return not (self.is_done or self.has_failed) and self.unread < _MOST_TRIES


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

    def missing(self) -> list[int]:
        """The numbers that have no finding."""
        known = {one.number for one in self.found} if self.question.numbers else ()
        return [number for number in self.question.numbers if number not in known]

    def take(self, poll: _Poll, completion: Completion, remark: str | None, question: Question) -> None:
        """Read what a reply says to the question as this request asked it."""
        found = question.read(completion.text, remark)
        is_numbered = bool(question.numbers)
        self.found += found if is_numbered else found[:1]
        self.second_tries += [poll.unread > 0] * len(found[:1])
        if found and not (is_numbered and self.missing()):
            poll.is_done = True
        elif not poll.is_done:
            poll.unread += 1
            problem = completion.problem or question.form.problem_of(completion.text, question.numbers or None)
            self.problem = self.problem or problem

    def polled(self) -> list[tuple[Any, bool]]:
        """The answers, and whether each came with the second try.

        Raises:
            JudgeError: there is none, or at least a third could not be read (`InvalidVerdict`).
        """
        unread = sum(not poll.is_done and poll.unread > 0 for poll in self.polls)
        if not self.found:
            raise JudgeError("InvalidVerdict", self.problem or OTHER_JSON)
        if 3 * unread >= self.question.polls and not self.question.numbers:
            message = f"{unread} of {self.question.polls} replies could not be read, also when asked for again"
            raise JudgeError("InvalidVerdict", f"{message}: {self.problem}")
        answers = list(zip(self.found, self.second_tries, strict=False))
        return answers[: self.question.polls] if self.question.polls > 1 else answers

    def numbered(self) -> list[Any]:
        """One finding for each number, in their order; of several opinions the majority's.

        Raises:
            JudgeError: there is none at all (`InvalidVerdict`).
        """
        if self.question.numbers and not self.found:
            raise JudgeError("InvalidVerdict", self.problem or OTHER_JSON)
        by_number: dict[int, list[NumberedFinding]] = {}
        for finding in self.found:
            by_number.setdefault(finding.number, []).append(finding)
        return [majority(by_number[number]) for number in sorted(by_number)]


async def ask(
    questions: Sequence[Question], send: Send, *, choices: bool, remark: str | None, opinions: int = 1
) -> list[Answers]:
    """The answers to these questions, which the first request asks together.

    Args:
        questions: about one record.
        send: sends a request.
        choices: whether the endpoint gives several choices.
        remark: put after the reasoning of each answer.
        opinions: that are wanted at least of what is asked once, where the endpoint gives choices.

    Raises:
        JudgeError: the first request failed.
    """
    asked = [Answers(question, polls=[_Poll() for _ in range(question.polls)]) for question in questions]
    most = max(opinions, *(question.polls for question in questions)) if choices else 1
    for place, completion in enumerate((await send(questions, most))[:most]):
        for answers in asked:
            if place < len(answers.polls) or len(answers.polls) == 1:
                answers.take(answers.polls[min(place, len(answers.polls) - 1)], completion, remark, answers.question)

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
                answers.take(poll, completion, remark, question)

    for _ in range(_FURTHER_ROUNDS):
        open_polls = [[(each, poll) for poll in each.polls if poll.is_open] for each in asked]
        requests = [
            [polls[place] for polls in open_polls if place < len(polls)]
            for place in range(max(map(len, open_polls), default=0))
        ]
        await asyncio.gather(*map(further, requests))
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
