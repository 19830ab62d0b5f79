"""What everybody in `throughput.py` is asked to do: have the endpoint judge each of a number of answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from serving.passages import passages, question

RESPONSE = "Beta settles card payments after midnight, and Alpha stores invoices in Lisbon until the end of the month."
MODEL = "fixed-latency"
KEY = "no-key"


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A question, the passages and the answer."""

    question: str
    passages: list[str]
    response: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """Where the judge is, and how many requests it is sent at a time."""

    base_url: str
    concurrency: int


class Contender(Protocol):
    """Has answers judged."""

    def judge(self, answers: list[Answer]) -> int:
        """Have all of them judged; the number that got a verdict."""
        ...

    def close(self) -> None: ...


def answers(count: int) -> list[Answer]:
    """Four passages of a kilobyte each, the same for all, so that making them takes no time; no two questions alike."""
    found = passages(4)
    return [Answer(question=question(number), passages=found, response=RESPONSE) for number in range(count)]
