"""What scoring may cost, what happens when that is spent, and what is left of it in this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from ragspan.arguments import AMOUNT, WHOLE, one_of
from ragspan.engine.threads import ReentrantCriticalSection, step
from ragspan.exceptions import BudgetExhausted, ConfigurationError, JudgeError
from ragspan.judges.session import Settle
from ragspan.usage import Usage

_MINUTE = 60.0  # seconds
_DAY = 24 * 60 * 60.0
_ROUNDING = 1e-9  # of sums of fractions


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of what the judges of an engine may spend, over all of its metrics.

    They hold for judges that ask a language model, request by request: before one is sent, what it is expected to take is
    set aside, and corrected to what it took. What the reply says was used counts, so requests under way may lead over a
    limit by as much as they take more than expected; a minute's excess is taken off the next minutes. Retries within a
    provider's client are not seen and count as one request. A request that fails counts as a request and takes nothing
    else; one that is cancelled counts in full. The embedded judge and classifiers are never limited.

    Nothing waits for a budget: where it does not allow a request, the metric's `fallback` comes at once. A score of a
    fallback says so (`Score.fallback`, `ragspan.fallback.<metric>`), and names the judge that really judged. Where the judge is
    asked about a share of the answers (`judge_share`), the embedded judge's score is the fallback.

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
    fallback: Literal["skip", "overlap"] = "skip"
    """What scores instead. `"skip"`: nothing, `NotApplicable("budget_exhausted")`. `"overlap"`: the embedded judge, in place of
    the metric's own. Skipped are metrics that it cannot judge, and those that do not keep their judge in a field."""

    def __post_init__(self) -> None:
        AMOUNT.or_none().check_fields(self, "usd_per_day", "tokens_per_minute")
        WHOLE.or_none().check_fields(self, "requests_per_minute")
        if self.usd_per_day is None and self.tokens_per_minute is None and self.requests_per_minute is None:
            raise ConfigurationError("a budget needs a limit: usd_per_day, tokens_per_minute or requests_per_minute")
        one_of("skip", "overlap").check_fields(self, "fallback")


class Limit:
    """Lets through an amount at once. What is taken beyond it is owed. Not safe for threads by itself.

    It starts full, and time adds `rate` a second. None is an amount of each window of 24 hours, the first of which begins with the
    first spending: what starts full and is filled again by time would let twice the amount through on the first day.
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

    def will_allow(self, amount: float) -> bool:
        """Whether time adds enough. Of a day's amount it does not: that comes with another day."""
        return self._rate is not None and amount <= self._amount

    def allows(self, amount: float) -> bool:
        return amount <= self.level + _ROUNDING

    def settle(self, taken: float, used: float) -> None:
        """Correct what was taken to what turned out to be used; what does not fit in is lost."""
        self._level = min(self._amount, self.level + taken - used)
        if self._since is None:
            self._since = self._clock()


_AMOUNTS: dict[str, Callable[[Usage], float]] = {
    "requests_per_minute": lambda usage: usage.requests,
    "tokens_per_minute": lambda usage: usage.input_tokens + usage.output_tokens,
    "usd_per_day": lambda usage: usage.usd or 0.0,
}


class BudgetTracker(ReentrantCriticalSection):
    """The account of a budget: all limits allow a request, or it takes nothing from any of them.

    Metrics may ask from any thread. A finaliser may settle a charge, as happens to a request whose event loop is gone.
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

    def reserve(self, expected: Usage, *, denials: list[BudgetExhausted] | None = None) -> Settle:
        """Set aside what a request is expected to take. A denial is noted, too, whatever a judge makes of the exception.

        Raises:
            BudgetExhausted: a limit does not allow it.
            JudgeError: dollars are limited, and the price of the judge is not known (`unknown_price`).
        """
        if self._needs_price and expected.usd is None:
            message = "usd_per_day limits what judges spend, but the price of this one is not known: give it price="
            raise JudgeError("unknown_price", message)
        if (denial := self._take(expected)) is not None:
            if denials is not None:
                denials.append(denial)
            raise BudgetExhausted(denial.limit, denial.outage)  # another one, which holds frames
        unsettled = [expected]
        return lambda used: self._settle(unsettled, used)

    @step
    def _take(self, expected: Usage) -> BudgetExhausted | None:
        """The denial of the first limit that does not allow it, in which case nothing is taken."""
        for name, (limit, amount) in self._limits.items():
            if not limit.allows(amount(expected)):
                return BudgetExhausted(name, limit.will_allow(amount(expected)))
        for limit, amount in self._limits.values():
            limit.settle(0.0, amount(expected))
        return None

    @step
    def _settle(self, unsettled: list[Usage], used: Usage) -> None:
        """Correct what was set aside to what was used, once; `used.usd` of None leaves the dollars as they were expected."""
        while unsettled:
            expected = unsettled.pop()
            used = replace(used, usd=expected.usd) if used.usd is None else used
            for limit, amount in self._limits.values():
                limit.settle(amount(expected), amount(used))
