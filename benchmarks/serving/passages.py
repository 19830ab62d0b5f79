"""Passages of a kilobyte about the same kinds of things in ever different combinations, and questions about them.

A judge has real work with them: sentences that overlap with each other, names, numbers and places.
"""

from __future__ import annotations

import random

_PRODUCTS = ("Beta", "Alpha", "Gamma", "Delta", "Orion", "Vega", "Lyra", "Cygnus", "Atlas", "Hermes")
_VERBS = ("settles", "stores", "checks", "forwards", "archives", "encrypts", "rejects", "exports", "bills", "indexes")
_THINGS = ("card payments", "user profiles", "invoices", "audit records", "delivery notes", "contracts", "refunds")
_TIMES = ("after midnight", "every Monday", "within two hours", "before noon", "at the end of the month", "on request")
_PLACES = ("in Rome", "in Lisbon", "in the second region", "in the archive", "at the branch office", "in Oslo")
_KILOBYTE = 1000


def passages(count: int, *, seed: int = 7) -> list[str]:
    """Different ones, and the same at every call."""
    draw = random.Random(seed)
    return [_passage(draw) for _ in range(count)]


def question(number: int) -> str:
    draw = random.Random(number)
    return f"Question {number}: what about {draw.choice(_THINGS)} {draw.choice(_PLACES)}, and when is it done?"


def _passage(draw: random.Random) -> str:
    text = ""
    while len(text) < _KILOBYTE:
        text += (
            f"{draw.choice(_PRODUCTS)} {draw.choice(_VERBS)} up to {draw.randrange(10, 5000)} {draw.choice(_THINGS)} "
            f"{draw.choice(_PLACES)} {draw.choice(_TIMES)}. "
        )
    return text[:_KILOBYTE]
