"""The handbook of a bicycle rental that does not exist, and a search in it that needs no model and no network."""

from __future__ import annotations

import re
from dataclasses import dataclass


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
    """The pages that share most words with a question, best first, each with the share of the question's words."""
    wanted = _words(question)
    scored = [(page, len(wanted & _words(f"{page.name} {page.text}")) / len(wanted)) for page in HANDBOOK]
    return sorted(scored, key=lambda pair: -pair[1])[:count]


def _words(text: str) -> set[str]:
    return {word.rstrip("s") for word in re.findall(r"[\w-]+", text.lower())}
