"""What the demo asks, in which way, and what the scripted model answers."""

from __future__ import annotations

import enum
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
    """A question, who answers it, and how."""

    framework: str
    title: str
    """What the reader is to see in it."""
    question: str
    response: str
    """What the model says."""
    way: Way = Way.CALL
    is_wrong: bool = False
    """The response contradicts the handbook, so that every score of its grounding should fail."""


class AnsweringFramework(Protocol):
    """A framework's programs, with ragspan attached as a user would."""

    def answer(self, asked: Asked) -> str:
        """Let the framework answer; returns what the caller got."""
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
        is_wrong=True,
    ),
    Asked(
        framework="langchain",
        title="LangChain chain: an invention",
        question="Can I take a bike abroad?",
        response="Yes. Partner shops in Denmark repair it, and the ferry costs nothing.",
        is_wrong=True,
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
