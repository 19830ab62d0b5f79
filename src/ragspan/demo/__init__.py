"""`ragspan demo`: eight questions about the handbook of a bicycle rental, answered by real frameworks with a scripted model.

Each integration registers an `AnsweringFramework` class in the entry-point group `ragspan_demo`.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Protocol

PROMPT = "Answer the question from the handbook.\n\n{context}\n\nQuestion: {question}"


class Way(enum.Enum):
    """How the application calls its framework."""

    CALL = "call"
    AGENT = "agent"
    CLOSED_EARLY = "stream, closed early"


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A question, its framework and the way of the call."""

    framework: str
    title: str
    """The heading of this answer in the output."""
    question: str
    response: str
    """The model's scripted answer."""
    way: Way = Way.CALL


class AnsweringFramework(Protocol):
    """A framework's programs, with ragspan set up as by a user."""

    def answer(self, asked: Asked) -> str | None:
        """Return the framework's answer; None if a package that it needs is not installed."""
        ...


SCRIPT: tuple[Asked, ...] = (
    Asked(
        framework="langchain",
        title="LangChain chain: a good answer",
        question="How do I return my bike?",
        response="Push it into the dock at any station and wait for the green light.",
    ),
    Asked(
        framework="langchain",
        title="LangChain chain: an incomplete answer",
        question="What does the day ticket include?",
        response="It includes a helmet.",
    ),
    Asked(
        framework="langchain",
        title="LangChain chain: a wrong number",
        question="How many days does it take until my deposit is released?",
        response="The deposit is released within 7 days after the bike is back.",
    ),
    Asked(
        framework="langchain",
        title="LangChain chain: an invention",
        question="Can I take a bike abroad?",
        response="Yes. Partner shops in Denmark repair it, and the ferry costs nothing.",
    ),
    Asked(
        framework="langchain",
        title="LangChain chain: a refusal",
        question="Do you rent tandems to children?",
        response="Children ride in a cargo bike. There is no information about tandems.",
    ),
    Asked(
        framework="langchain",
        title="LangChain stream, closed by its reader",
        question="How far does an e-bike go?",
        response="An e-bike goes 60 kilometres on one charge.",
        way=Way.CLOSED_EARLY,
    ),
    Asked(
        framework="langchain",
        title="LangGraph agent: a good answer",
        question="What if my bike breaks down?",
        response="Call the number on its frame, and we bring another bike within 45 minutes.",
        way=Way.AGENT,
    ),
    Asked(
        framework="llama-index",
        title="LlamaIndex query engine: a good answer",
        question="May a child ride an e-bike?",
        response="No, children below 12 ride only in a cargo bike, with an adult.",
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A page of the handbook."""

    name: str
    text: str


HANDBOOK = (
    Page(
        name="tickets",
        text="A day ticket costs 12 euros and is valid for 24 hours. It includes a lock, a helmet and breakdown help.",
    ),
    Page(
        name="returns",
        text="Return your bike at any of our 40 stations: push it into the dock and wait for the green light. "
        "Without the green light the rental goes on.",
    ),
    Page(
        name="deposit",
        text="We hold a deposit of 50 euros on your card. The deposit is released within 3 days after the bike is back.",
    ),
    Page(
        name="children",
        text="Children below 12 ride only in a cargo bike, with an adult. Cargo bikes can be booked at the harbour.",
    ),
    Page(
        name="breakdowns",
        text="If a bike breaks down, call the number on its frame. We bring another bike within 45 minutes.",
    ),
    Page(name="e-bikes", text="An e-bike goes 60 kilometres on one charge. Charge it at any dock with a blue lamp."),
)


def find(question: str, count: int = 3) -> list[tuple[Page, float]]:
    """The pages that share the most words with a question, best first, each with its share of the question's words."""
    wanted = _words(question)
    scored = [(page, len(wanted & _words(f"{page.name} {page.text}")) / len(wanted)) for page in HANDBOOK]
    return sorted(scored, key=lambda pair: -pair[1])[:count]


def _words(text: str) -> set[str]:
    return {word.rstrip("s") for word in re.findall(r"[\w-]+", text.lower())}
