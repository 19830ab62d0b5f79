"""What scoring may cost, what happens when that is spent, and what is left of it in this process.

Guarantees of `BudgetTracker`:
- All limits allow a request, or it takes nothing from any of them. Nothing waits for a limit.
- Metrics may ask from any thread. A finaliser may settle a charge, as happens to a request whose event loop is gone (see
  `ReentrantCriticalSection`). A `Limit` by itself is not safe for threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from ragspan.arguments import AMOUNT, WHOLE, Rule, has_methods
from ragspan.engine.threads import ReentrantCriticalSection, step
from ragspan.exceptions import BudgetExhausted, ConfigurationError, JudgeError
from ragspan.judges.judge_protocols import Judge, Verifier
from ragspan.judges.session import Settle
from ragspan.usage import Usage

_MINUTE = 60.0  # seconds
_DAY = 24 * 60 * 60.0
_ROUNDING = 1e-9  # of sums of fractions
_LEAST = Usage(requests=1, output_tokens=1)
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


class Limit:
    """Lets through an amount at once. What is taken beyond it is owed.

    Args:
        amount: what fits in, more than 0. It starts full.
        rate: what time adds a second. None is an amount of each window of 24 hours, the first of which begins with the first spending:
            what starts full and is filled again by time would let twice the amount through on the first day.
        clock: seconds that do not go backwards.
    """

    def __init__(self, amount: float, *, rate: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._amount = self._level = amount
        self._rate = rate
        self._clock = clock
        self._since: float | None = None
        """When the level was right, or the window began."""

    @property
    def level(self) -> float:
        """What can be taken now; negative while something is owed."""
        now = self._clock()
        passed = 0.0 if self._since is None else now - self._since
        if self._rate is not None:
            self._level = min(self._amount, self._level + passed * self._rate)
            self._since = now
        elif passed >= _DAY:
            self._level = self._amount
            self._since = None
        return self._level

    @property
    def room(self) -> float:
        """From 0, nearly spent, to 1, plenty: what part of a share of the answers there is room for. A day's amount is to last for it."""
        left = max(self.level, 0.0) / self._amount
        if self._rate is not None:
            return min(max((left - _SCARCE) / (_PLENTY - _SCARCE), 0.0), 1.0)
        time_left = 1.0 if self._since is None else 1 - (self._clock() - self._since) / _DAY
        return 1.0 if left >= time_left else (left / time_left) ** _HASTE

    @property
    def is_spent(self) -> bool:
        """Whether it allows not even one request or token, or nothing of its dollars."""
        return self.level <= 0 if self._rate is None else self.level < 1

    def wait(self, amount: float) -> float | None:
        """Seconds until time has added enough; None if it is more than fits in, or comes with another day."""
        if self._rate is None or amount > self._amount:
            return None
        return max((amount - self.level) / self._rate, 0.0)

    def allows(self, amount: float) -> bool:
        return amount <= self.level + _ROUNDING

    def take(self, amount: float = 1.0) -> bool:
        """Take all of the amount, 0 or more, or nothing."""
        if not self.allows(amount):
            return False
        self.settle(0.0, amount)
        return True

    def settle(self, taken: float, used: float) -> None:
        """Correct what was taken to what turned out to be used; what does not fit in is lost."""
        self._level = min(self._amount, self.level + taken - used)
        if self._since is None:
            self._since = self._clock()


@dataclass(frozen=True, slots=True)
class Denial:
    """A limit of the budget that does not allow a request, and the seconds until it does, if it does."""

    limit: str
    wait: float | None


_AMOUNTS: dict[str, Callable[[Usage], float]] = {
    "requests_per_minute": lambda usage: usage.requests,
    "tokens_per_minute": lambda usage: usage.input_tokens + usage.output_tokens,
    "usd_per_day": lambda usage: usage.usd or 0.0,
}


class BudgetTracker(ReentrantCriticalSection):
    """The account of a budget.

    Args:
        budget: its limits.
        clock: seconds that do not go backwards.
    """

    def __init__(self, budget: Budget, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._needs_price = budget.usd_per_day is not None
        self._limits: dict[str, tuple[Limit, Callable[[Usage], float]]] = {}
        for name, amount_of in _AMOUNTS.items():
            limit = getattr(budget, name)
            if limit is not None:
                rate = None if name == "usd_per_day" else limit / _MINUTE
                self._limits[name] = Limit(limit, rate=rate, clock=clock), amount_of

    @step
    def spent_limit(self) -> str | None:
        """The limit that allows no request at all now, if one does not."""
        return next((name for name, (limit, _) in self._limits.items() if limit.is_spent), None)

    @step
    def limit_on(self, expected: Usage) -> str | None:
        """The limit that does not allow this now, if one does not."""
        return self._denies(expected)

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
        unsettled = [expected]
        return lambda used: self._settle(unsettled, used)

    @step
    def wait(self, limit: str, expected: Usage) -> float | None:
        """Seconds until this limit allows as much; None if waiting for it is not a use."""
        bucket, amount = self._limits[limit]
        return bucket.wait(amount(expected))

    @step
    def _settle(self, unsettled: list[Usage], used: Usage) -> None:
        """Correct what was set aside to what was used, once; `used.usd` of None leaves the dollars as they were expected."""
        while unsettled:
            expected = unsettled.pop()
            used = replace(used, usd=expected.usd) if used.usd is None else used
            for limit, amount in self._limits.values():
                limit.settle(amount(expected), amount(used))

    @step
    def _take(self, expected: Usage) -> str | None:
        """The limit that does not allow it, in which case nothing is taken."""
        denied_by = self._denies(expected)
        for limit, amount in self._limits.values() if denied_by is None else ():
            limit.settle(0.0, amount(expected))
        return denied_by

    def _denies(self, expected: Usage) -> str | None:
        limits = self._limits.items()
        return next((name for name, (limit, amount) in limits if not limit.allows(amount(expected))), None)


class Allowance:
    """What the budget allows one run of a metric; as `ragspan.judges.session.Allowance` has it.

    The task's context holds it. It does not know the run: garbage in a cycle would wait for the collector, which stops all
    requests of the application when it goes through the whole heap.
    """

    def __init__(self, budget: BudgetTracker) -> None:
        self._budget = budget
        self.denial: Denial | None = None
        """Of a request."""

    def reserve(self, expected: Usage) -> Settle:
        try:
            return self._budget.reserve(expected)
        except BudgetExhausted as error:
            self.denial = Denial(error.limit, error.wait)
            raise

    def spent(self) -> Denial | None:
        """What denies any request at all now."""
        limit = self._budget.spent_limit()
        return None if limit is None else Denial(limit, self._budget.wait(limit, _LEAST))
