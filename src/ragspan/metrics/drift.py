"""Evidence that scores got worse, which may be looked at at any time.

A gambler bets on each score that it is below what scores used to be, and pays for each that is above. While scores are no worse,
nobody can expect to win at such bets: the chance that the stake ever grows a hundredfold is one in a hundred, however often one
looks (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B, 2024). A new gambler begins
every hour with a stake of one, so that a change finds one who has not lost yet; the chance that any of those of a month gets
`HOURS` times the stake is at most one (Shin, Ramdas and Rinaldo, "E-detectors", 2022). The number of scores does not matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

HOURS: Final = 720
"""Of a month: how many times the stake is evidence of 1, which comes on unchanged scores once a month at most."""
LEAST_PAST: Final = 200
MOST_PAST: Final = 2_000
"""Scores from which it is learned what they used to be, two made-up ones included; no evidence before the first number."""
_HOUR: Final = 3_600.0
_CAUTION: Final = 2.0
"""Standard errors by which the past's mean is taken to be lower than it was."""
_BOLDNESS: Final = (0.05, 0.1, 0.2, 0.4, 0.8)
"""What parts of the largest bet are made: small ones find small changes, large ones find large changes soon."""
_DOUBT: Final = 0.1
"""The evidence from which scores no longer count as usual."""
_MOST: Final = 1e12


@dataclass(slots=True)
class _Past:
    """What scores used to be: number, mean and spread, as Welford adds them up.

    It begins with a score of 0 and one of 1, so that after many equal scores another is no wonder.
    """

    number: int = 2
    mean: float = 0.5
    squares: float = 0.5

    def add(self, value: float) -> None:
        self.number += 1
        apart = value - self.mean
        self.mean += apart / self.number
        self.squares += apart * (value - self.mean)

    @property
    def expected(self) -> float:
        """A mean that the true one is hardly below."""
        error = math.sqrt(self.squares / (self.number - 1) / self.number)
        return max(self.mean - _CAUTION * error, 0.0)


@dataclass(slots=True)
class _Gambler:
    """The stake of those who bet with the same boldness: of the one who has most."""

    boldness: float
    stake: float = 1.0
    since: float = 0.0
    """When that one began."""


@dataclass(slots=True)
class DriftDetector:
    """Takes the scores of one metric and one judge in their order; not safe from several threads.

    The first scores say what is usual. Scores are bets' outcomes from `LEAST_PAST` on; they still count as usual up to
    `MOST_PAST`, as long as there is little evidence against them.

    The bound needs scores that do not repeat each other: the same answer ten times in a row is ten times the evidence.
    """

    evidence: float = 0.0
    """From 0; at 1 it is time for an alarm, after which `reset` is due."""
    _past: _Past = field(default_factory=_Past)
    _gamblers: tuple[_Gambler, ...] = ()
    _next_start: float = 0.0

    @property
    def since(self) -> float | None:
        """When the scores got worse, as far as it can be told; None without a sign of it."""
        if self.evidence * HOURS <= 1:
            return None
        return max(self._gamblers, key=lambda one: one.stake).since

    def add(self, value: float, at: float) -> float:
        """Take a score, 0 to 1, at this time in seconds, and give the evidence."""
        if self._past.number < LEAST_PAST:
            self._past.add(value)
            return 0.0
        if not self._gamblers:
            self._gamblers = tuple(_Gambler(boldness=boldness) for boldness in _BOLDNESS)
        if at >= self._next_start:
            self._begin(at)
        expected, stakes = self._past.expected, 0.0
        for one in self._gamblers:
            bet = one.boldness / (1 - expected)
            one.stake = min(one.stake * (1 + bet * (expected - value)), _MOST)
            stakes += one.stake
        self.evidence = stakes / len(_BOLDNESS) / HOURS
        if self._past.number < MOST_PAST and self.evidence < _DOUBT:
            self._past.add(value)
        return self.evidence

    def reset(self) -> None:
        """Forget everything, and learn again what is usual."""
        self._past, self._gamblers, self._next_start, self.evidence = _Past(), (), 0.0, 0.0

    def _begin(self, now: float) -> None:
        """Let a new gambler begin; who has less than the stake by now gives way."""
        self._next_start = now + _HOUR
        for one in self._gamblers:
            if one.stake <= 1:
                one.stake, one.since = 1.0, now
