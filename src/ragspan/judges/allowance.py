"""What a judge may still spend, decided request by request.

The engine lays an allowance around each metric. A judge that pays for its requests asks it before each of them, and says
afterwards what the request took. Judges know nothing of budgets, and budgets nothing of judges. Where no allowance is
laid around it, a judge may spend what it likes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Protocol, runtime_checkable

from ragspan.judges.prices import Price
from ragspan.outcomes import Usage


class Reservation(Protocol):
    """What is held ready for one request."""

    def settle(self, used: Usage) -> None:
        """Put what the request really took in place of what was expected. Counts the first time only."""
        ...


class Allowance(Protocol):
    """Decides whether a request may be sent."""

    def reserve(self, expected: Usage) -> Reservation:
        """Set aside what a request is expected to take; `expected.usd` is None where the price is not known.

        Raises:
            BudgetExhausted: there is not enough left. Nothing is set aside then.
            JudgeError: money is limited and the price is not known.
        """
        ...


@runtime_checkable
class Spender(Protocol):
    """A judge whose requests are paid for: one that asks the allowance."""

    @property
    def name(self) -> str: ...

    @property
    def price(self) -> Price | None:
        """None if it is not known."""
        ...


_allowance: ContextVar[Allowance | None] = ContextVar("ragspan_allowance", default=None)


@contextlib.contextmanager
def allowed_by(allowance: Allowance | None) -> Iterator[None]:
    """Let judges that are asked inside heed it, tasks and threads with a copied context included."""
    token = _allowance.set(allowance)
    try:
        yield
    finally:
        _allowance.reset(token)


def lift_limits() -> None:
    """Let judges spend freely from here on, to the end of the running task."""
    _allowance.set(None)


def reserve(expected: Usage) -> Reservation:
    """Set aside what a request is expected to take, where an allowance limits it.

    Raises:
        JudgeError: as `Allowance.reserve`.
    """
    allowance = _allowance.get()
    return allowance.reserve(expected) if allowance is not None else _Free()


class _Free:
    """A reservation without limits."""

    def settle(self, used: Usage) -> None:
        """Nothing was set aside."""
