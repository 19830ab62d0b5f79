"""What scoring may cost, what happens when that is spent, and what is left of it in this process.

Guarantees of `BudgetTracker`:
- All limits allow a request, or it takes nothing from any of them. Nothing waits for a limit.
- Metrics may ask from any thread. A finaliser may settle a charge, as happens to a request whose event loop is gone (see
  `ReentrantCriticalSection`).
- The child of a fork begins anew: a fork replaces the tracker with the engine's other parts.

`TokenBucket` and `DailySum` are not safe for threads by themselves: their steps belong inside a critical section.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias, get_args

from ragspan.arguments import AMOUNT, WHOLE, Rule, has_methods
from ragspan.engine.threads import ReentrantCriticalSection, step
from ragspan.exceptions import BudgetExhausted, ConfigurationError, JudgeError
from ragspan.judges.judge_protocols import Judge, Verifier
from ragspan.judges.session import Settle
from ragspan.usage import Usage

_MINUTE = 60.0  # seconds
_DAY = 24 * 60 * 60.0
_SCARCE, _PLENTY = 0.25, 0.75
"""Between these parts of a minute's limit, what is left of it makes a share of the answers smaller."""
_HASTE = 8
"""How much a day that is spent too fast makes a share smaller: the power of what is left against what should be left."""

NamedFallback: TypeAlias = Literal["skip", "overlap", "hhem"]

_VERIFIER = has_methods("a judge or a verifier", "verify_claims")
_FALLBACK = Rule(
    f"one of {', '.join(map(repr, get_args(NamedFallback)))}, a judge or a verifier",
    lambda value: value in get_args(NamedFallback) if isinstance(value, str) else _VERIFIER.fits(value),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """Limits of what the judges of an engine may spend, over all of its metrics.

    They hold for judges that ask a language model, request by request: before one is sent, what it is expected to take is
    set aside, and corrected to what it took. What the reply says was used counts, so requests under way may lead over a
    limit by as much as they take more than expected; a minute's excess is taken off the next minutes. Retries within a
    provider's client are not seen and count as one request. A request that fails counts as a request and takes nothing
    else; one that is cancelled counts in full. The embedded judge and classifiers are never limited.

    Nothing waits for a budget: where it does not allow a request, the metric's `fallback` comes at once. A score of a
    fallback says so (`Score.fallback`, `ragspan.fallback.<metric>`), and names the judge that really judged. Where the judge is
    asked about a share of the answers (`judge_share`), a budget that runs short makes that share smaller, and the embedded
    judge's score is the fallback.

    The account is kept by the process, and begins anew with each: `N` workers of a server spend up to `N` budgets, and a
    restart forgets what was spent.

    Raises:
        ConfigurationError: a limit is not a number above 0, there is none, or the fallback is none.
    """

    usd_per_day: float | None = None
    """US dollars in each window of 24 hours, the first of which begins with the first request. Windows do not slide: any
    24 hours lie in two of them at most, and may hold what is left of one and all of the next. The price of each judge has
    to be known."""
    tokens_per_minute: float | None = None
    """Input and output tokens. At most as many at once; from then on time adds as many a minute, so the first minute may
    see twice as many. A request that is expected to take more than a minute's tokens is never sent."""
    requests_per_minute: int | None = None
    """Requests to judges, in the same way."""
    fallback: NamedFallback | Judge | Verifier = "skip"
    """What scores instead. `"skip"`: nothing, `NotApplicable("budget_exhausted")`. `"overlap"`: the embedded judge, in
    place of the metric's own. A judge: that one; it is asked outside of the budget, so it should cost nothing. A verifier,
    which has no method but `verify_claims`: the metrics of faithfulness have its verdicts on the claims that the embedded
    judge finds, others are skipped. `"hhem"` is such a verifier, `ragspan_hhem.HHEMVerifier()`. Skipped are also metrics
    that do not keep their judge in a field."""

    def __post_init__(self) -> None:
        AMOUNT.or_none().check_fields(self, "usd_per_day", "tokens_per_minute")
        WHOLE.or_none().check_fields(self, "requests_per_minute")
        if self.usd_per_day is None and self.tokens_per_minute is None and self.requests_per_minute is None:
            raise ConfigurationError("a budget needs a limit: usd_per_day, tokens_per_minute or requests_per_minute")
        _FALLBACK.check_fields(self, "fallback")


class TokenBucket:
    """Lets through a rate on average, and a capacity at once. Starts full.

    - Over any time T no more than capacity + rate * T is taken, less what is given back; what `settle` charges beyond what
      was taken is owed, and nothing is let through until time has paid it.

    Args:
        rate_per_second: what time adds, more than 0.
        capacity: what fits in, more than 0.
        clock: seconds that do not go backwards.
    """

    __slots__ = ("_capacity", "_clock", "_credited_until", "_level", "_rate")

    def __init__(self, rate_per_second: float, capacity: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate_per_second
        self._capacity = capacity
        self._clock = clock
        self._level = capacity
        self._credited_until = clock()

    @property
    def level(self) -> float:
        """What can be taken now; negative while something is owed."""
        now = self._clock()
        self._level = min(self._capacity, self._level + (now - self._credited_until) * self._rate)
        self._credited_until = now
        return self._level

    @property
    def room(self) -> float:
        """From 0, nearly spent, to 1, plenty: what part of a share of the answers there is room for."""
        return min(max((self.level / self._capacity - _SCARCE) / (_PLENTY - _SCARCE), 0.0), 1.0)

    @property
    def is_spent(self) -> bool:
        """Whether it allows not even one request or token."""
        return self.level < 1

    def wait(self, amount: float) -> float | None:
        """Seconds until time has added enough for the amount; None if it is more than fits in."""
        return max((amount - self.level) / self._rate, 0.0) if amount <= self._capacity else None

    def take(self, amount: float = 1.0) -> bool:
        """Take all of the amount, 0 or more, or nothing."""
        if amount > self.level:
            return False
        self._level -= amount
        return True

    def settle(self, taken: float, used: float) -> None:
        """Correct what was taken to what turned out to be used, down into debt if need be; what does not fit in is lost."""
        self._level = self.level + taken - used  # whoever asks for the level gets no more than the capacity


class DailySum:
    """An amount that may be spent in each window of 24 hours, the first of which begins with the first spending.

    Not a bucket: one that starts full and is filled again by time would let twice the amount through on the first day.

    - What is taken in a window never exceeds the amount; what is used may, by as much as `settle` adds to it.
    - What is settled after the end of a window counts in the next one.

    Args:
        limit: the amount, more than 0.
        clock: seconds that do not go backwards.
    """

    def __init__(self, limit: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._spent = 0.0
        self._began: float | None = None

    @property
    def level(self) -> float:
        """What can be taken now; negative where more was used than taken."""
        self._end_window_in_time()
        return self._limit - self._spent

    @property
    def room(self) -> float:
        """As that of a bucket, so that what is left lasts until the window's end."""
        left = max(self.level, 0.0) / self._limit
        time_left = 1.0 if self._began is None else 1 - (self._clock() - self._began) / _DAY
        return 1.0 if left >= time_left else (left / time_left) ** _HASTE

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self.level <= 0

    def wait(self, amount: float) -> None:
        """None: nobody waits for another day."""

    def take(self, amount: float) -> bool:
        """Take all of the amount, or nothing."""
        if amount > self.level:
            return False
        self.settle(0.0, amount)
        return True

    def settle(self, taken: float, used: float) -> None:
        """Correct what was taken to what turned out to be used."""
        self._end_window_in_time()
        if self._began is None:
            self._began = self._clock()
        self._spent = max(0.0, self._spent + used - taken)

    def _end_window_in_time(self) -> None:
        if self._began is not None and self._clock() - self._began >= _DAY:
            self._spent = 0.0
            self._began = None


@dataclass(slots=True, eq=False)
class _Charge:
    """What was set aside for one request."""

    expected: Usage
    is_settled: bool = False


class BudgetTracker(ReentrantCriticalSection):
    """The account of a budget.

    Args:
        budget: its limits.
        clock: seconds that do not go backwards.
    """

    def __init__(self, budget: Budget, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        requests, tokens, dollars = budget.requests_per_minute, budget.tokens_per_minute, budget.usd_per_day
        self._needs_price = dollars is not None
        self._limits: dict[str, tuple[TokenBucket | DailySum, Callable[[Usage], float]]] = {}
        if requests is not None:
            bucket = TokenBucket(requests / _MINUTE, requests, clock)
            self._limits["requests_per_minute"] = bucket, lambda usage: usage.requests
        if tokens is not None:
            bucket = TokenBucket(tokens / _MINUTE, tokens, clock)
            self._limits["tokens_per_minute"] = bucket, lambda usage: usage.input_tokens + usage.output_tokens
        if dollars is not None:
            self._limits["usd_per_day"] = DailySum(dollars, clock), lambda usage: usage.usd or 0.0

    @step
    def spent_limit(self) -> str | None:
        """The limit that allows no request at all now, if one does not."""
        for name, (limit, _) in self._limits.items():
            if limit.is_spent:
                return name
        return None

    @step
    def limit_on(self, expected: Usage) -> str | None:
        """The limit that does not allow this now, if one does not."""
        return next((name for name, (limit, amount) in self._limits.items() if amount(expected) > limit.level), None)

    @step
    def room(self) -> float:
        """What part of a share of the answers there is room for, 0 to 1."""
        return min(limit.room for limit, _ in self._limits.values())

    def reserve(self, expected: Usage) -> Settle:
        """Set aside what a request is expected to take.

        Raises:
            BudgetExhausted: a limit does not allow it.
            JudgeError: dollars are limited, and the price of the judge is not known (`unknown_price`).
        """
        if self._needs_price and expected.usd is None:
            message = "usd_per_day limits what judges spend, but the price of this one is not known: give it price="
            raise JudgeError("unknown_price", message)
        denied_by = self._take(expected)
        if denied_by is not None:
            raise BudgetExhausted(denied_by, self.wait(denied_by, expected))
        return partial(self._settle, _Charge(expected))

    @step
    def wait(self, limit: str, expected: Usage) -> float | None:
        """Seconds until this limit allows as much; None if waiting for it is not a use."""
        bucket, amount = self._limits[limit]
        return bucket.wait(amount(expected))

    @step
    def _settle(self, charge: _Charge, used: Usage) -> None:
        """Correct what was set aside to what was used; `used.usd` of None leaves the dollars as they were expected."""
        if charge.is_settled:
            return
        charge.is_settled = True
        expected = charge.expected
        used = replace(used, usd=expected.usd) if used.usd is None else used
        for limit, amount in self._limits.values():
            limit.settle(amount(expected), amount(used))

    @step
    def _take(self, expected: Usage) -> str | None:
        """The limit that does not allow it, in which case nothing is taken."""
        for name, (limit, amount) in self._limits.items():
            if amount(expected) > limit.level:
                return name
        for limit, amount in self._limits.values():
            limit.take(amount(expected))
        return None
