"""What scoring may cost, and what happens when that is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from ragspan.exceptions import ConfigurationError
from ragspan.judges.base import Judge, Verifier

NamedFallback: TypeAlias = Literal["skip", "overlap", "hhem"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """Limits of what the judges of an engine may spend, over all of its metrics.

    They hold for judges that ask a language model, request by request: before one is sent, what it is expected to take is
    set aside, and corrected to what it took. What the reply told was used counts, so requests under way may lead over a
    limit by as much as they take more than expected; a minute's excess is taken off the next minutes. Retries within a
    provider's client are not seen and count as one request. A request that fails counts as a request and takes nothing
    else; one that is cancelled counts in full. The embedded judge and classifiers are never limited.

    Nothing waits for a budget: where it does not allow a request, the metric's `fallback` comes at once. A score of a
    fallback says so (`Score.fallback`, `ragspan.fallback.<metric>`), and names the judge that really judged.

    The account is kept by the process, and begins anew with each: `N` workers of a server spend up to `N` budgets, and a
    restart forgets what was spent.

    Raises:
        ConfigurationError: a limit is no number above 0, there is none, or the fallback is none.
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
    place of the metric's own. A judge: likewise; it is asked outside of the budget, so it should cost nothing. A verifier,
    which has no method but `verify_claims`: the metrics of faithfulness have its verdicts on the claims that the embedded
    judge finds, others are skipped. `"hhem"` is such a verifier, `HHEMVerifier()`. Skipped are also metrics that do not keep
    their judge in a field."""

    def __post_init__(self) -> None:
        for name in ("usd_per_day", "tokens_per_minute"):
            _require_number(name, getattr(self, name))
        requests = self.requests_per_minute
        if requests is not None and (not _is_number(requests) or requests < 1 or requests != int(requests)):
            raise ConfigurationError(f"requests_per_minute is {requests!r}, but should be a whole number, at least 1")
        if self.usd_per_day is None and self.tokens_per_minute is None and requests is None:
            raise ConfigurationError("a budget needs a limit: usd_per_day, tokens_per_minute or requests_per_minute")
        _require_fallback(self.fallback)


def _require_number(name: str, value: object) -> None:
    if value is not None and not _is_number(value):
        raise ConfigurationError(f"{name} is {value!r}, but should be a number above 0")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf


def _require_fallback(fallback: object) -> None:
    if isinstance(fallback, str):
        fits = fallback in get_args(NamedFallback)
    else:
        fits = not isinstance(fallback, type) and callable(getattr(fallback, "verify_claims", None))
    if not fits:
        names = ", ".join(map(repr, get_args(NamedFallback)))
        shown = repr(fallback) if isinstance(fallback, str) else f"a {type(fallback).__name__}"
        raise ConfigurationError(f"fallback is {shown}, but should be one of {names}, a judge or a verifier")
