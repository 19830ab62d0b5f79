"""What the classifier is asked about, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """A claim, and the contexts that may support it, which are read as one text."""

    contexts: tuple[str, ...]
    claim: str


@dataclass(frozen=True, kw_only=True, slots=True)
class FittedPair:
    """A pair as the classifier reads it."""

    tokens: tuple[int, ...]
    remark: str | None = None
    """What of the pair is left out, in words; None if nothing is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PairFinding:
    """What the classifier makes of a pair."""

    probability: float
    """That the contexts support the claim, 0..1."""
    remark: str | None = None
    """See `FittedPair`."""
