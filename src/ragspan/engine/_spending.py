"""What is left of a budget in this process.

Guarantees:
- A request is allowed by all limits or takes nothing from any. Nothing waits for a limit.
- Metrics may ask from any thread; a reservation may be settled from a finaliser, as happens to a request whose event loop
  is gone (see `ReentrantCriticalSection`).
- A fork begins with a fresh account: it is among the parts of an engine that a fork replaces.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ragspan.engine._critical_section import ReentrantCriticalSection
from ragspan.engine._rate_limits import DailySum, TokenBucket
from ragspan.engine.budget import Budget
from ragspan.exceptions import BudgetExhausted, JudgeError
from ragspan.judges.session import Reservation
from ragspan.outcomes import Usage

_MINUTE = 60.0  # seconds


@dataclass(slots=True, eq=False)
class _Held:
    """What was set aside for one request."""

    spending: Spending
    expected: Usage
    window: int = 0
    """Of the daily sum."""
    is_settled: bool = False

    def settle(self, used: Usage) -> None:
        self.spending.settle(self, used)


class Spending:
    """The account of a budget.

    Args:
        budget: its limits.
        clock: seconds that do not go backwards.
    """

    def __init__(self, budget: Budget, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._section = ReentrantCriticalSection()
        self._requests = _by_the_minute(budget.requests_per_minute, clock)
        self._tokens = _by_the_minute(budget.tokens_per_minute, clock)
        self._dollars = None if budget.usd_per_day is None else DailySum(budget.usd_per_day, clock)

    @property
    def spent_limit(self) -> str | None:
        """The limit that allows no request at all now, if one does not."""
        return self._section.run(self._find_spent)

    def reserve(self, expected: Usage) -> Reservation:
        """Set aside what a request is expected to take.

        Raises:
            BudgetExhausted: a limit does not allow it.
            JudgeError: dollars are limited, and the price of the judge is not known (`unknown_price`).
        """
        if self._dollars is not None and expected.usd is None:
            message = "usd_per_day limits what judges spend, but the price of this one is not known: give it price="
            raise JudgeError("unknown_price", message)
        held = _Held(spending=self, expected=expected)
        denied_by = self._section.run(self._take, held)
        if denied_by is not None:
            raise BudgetExhausted(denied_by)
        return held

    def settle(self, held: _Held, used: Usage) -> None:
        """Correct what was set aside to what was used; `used.usd` of None leaves the dollars as they were expected."""
        self._section.run(self._correct, held, used)

    def _find_spent(self) -> str | None:
        if self._requests is not None and self._requests.level < 1:
            return "requests_per_minute"
        if self._tokens is not None and self._tokens.level <= 0:
            return "tokens_per_minute"
        return "usd_per_day" if self._dollars is not None and self._dollars.is_spent else None

    def _take(self, held: _Held) -> str | None:
        """The limit that does not allow it, in which case nothing is taken."""
        expected = held.expected
        if self._requests is not None and not self._requests.take(expected.requests):
            return "requests_per_minute"
        if self._tokens is not None and not self._tokens.take(_tokens(expected)):
            self._give_back_requests(expected)
            return "tokens_per_minute"
        if self._dollars is not None:
            window = self._dollars.take(expected.usd or 0.0)
            if window is None:
                self._give_back_requests(expected)
                if self._tokens is not None:
                    self._tokens.give_back(_tokens(expected))
                return "usd_per_day"
            held.window = window
        return None

    def _give_back_requests(self, expected: Usage) -> None:
        if self._requests is not None:
            self._requests.give_back(expected.requests)

    def _correct(self, held: _Held, used: Usage) -> None:
        if held.is_settled:
            return
        held.is_settled = True
        expected = held.expected
        if self._requests is not None:
            self._requests.settle(expected.requests, used.requests)
        if self._tokens is not None:
            self._tokens.settle(_tokens(expected), _tokens(used))
        if self._dollars is not None and used.usd is not None:
            self._dollars.settle(held.window, expected.usd or 0.0, used.usd)


class RunAllowance:
    """What one run of a metric may spend: what the budget still has; remembers that it was denied something."""

    def __init__(self, spending: Spending) -> None:
        self._spending = spending
        self.denied_by: str | None = None
        """The limit that denied the run a request."""

    def reserve(self, expected: Usage) -> Reservation:
        try:
            return self._spending.reserve(expected)
        except BudgetExhausted as denial:
            self.denied_by = denial.limit
            raise


def _by_the_minute(limit: float | None, clock: Callable[[], float]) -> TokenBucket | None:
    return None if limit is None else TokenBucket(limit / _MINUTE, limit, clock)


def _tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens
