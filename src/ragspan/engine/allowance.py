"""What the budget of an engine allows one run of a metric."""

from __future__ import annotations

from dataclasses import dataclass

from ragspan.engine.budget import BudgetTracker
from ragspan.exceptions import BudgetExhausted
from ragspan.judges.session import Settle
from ragspan.usage import Usage

_LEAST = Usage(requests=1, output_tokens=1)


@dataclass(frozen=True, slots=True)
class Denial:
    """A limit of the budget that does not allow a request, and the seconds until it does, if it does."""

    limit: str
    wait: float | None


class Allowance:
    """What the budget allows one run; as `ragspan.judges.session.Allowance` has it.

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
