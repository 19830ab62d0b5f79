"""One record that is being judged: what its judges share, meter and may spend.

The engine opens a session around each metric of a record. Judges that pay for requests ask it before each request, and
report what the request took. What one judge prepares for a record, such as the prompt's common part, or the claims that
several metrics need, is kept in the session and found by the record's other metrics. Judges know nothing of budgets, and
budgets nothing of judges. Without a session a judge spends what it likes, and nobody counts it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

from ragspan.judges.prices import Price
from ragspan.outcomes import Usage
from ragspan.records import RagRecord

_T = TypeVar("_T")


class Reservation(Protocol):
    """What is set aside for one request."""

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


@dataclass(slots=True)
class UsageMeter:
    """Adds up what was spent while it was open."""

    total: Usage = Usage()  # noqa: RUF009 - cannot be changed

    def add(self, usage: Usage) -> None:
        self.total += usage


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgingSession:
    """What the judges of one record have in common, as one of its metrics sees it."""

    record: RagRecord | None = None
    """The record; None before the first question, where a program opens a session by itself."""
    meter: UsageMeter | None = None
    """Of the metric."""
    allowance: Allowance | None = None
    """Of the metric; None is no limit."""
    _kept: dict[Hashable, Any] = field(default_factory=dict)
    """What has been prepared for the record, for all of its metrics."""

    def keep(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """What was made under this key for the record before, or is made now."""
        kept: _T | None = self._kept.get(key)
        return self._kept.setdefault(key, make()) if kept is None else kept


_current: ContextVar[JudgingSession] = ContextVar("ragspan_judging_session", default=JudgingSession())  # noqa: B039 - without a record nothing is kept in it


@contextlib.contextmanager
def judging(session: JudgingSession) -> Iterator[JudgingSession]:
    """Let judges that are asked inside use the session, tasks and threads with a copied context included."""
    token = _current.set(session)
    try:
        yield session
    finally:
        _current.reset(token)


@contextlib.contextmanager
def metered() -> Iterator[UsageMeter]:
    """Count what is spent inside, tasks and threads with a copied context included."""
    meter = UsageMeter()
    with judging(replace(_current.get(), meter=meter)):
        yield meter


def session_of(record: RagRecord) -> JudgingSession:
    """The session of this record. Where there is none, one begins that lasts until the next record in this context."""
    session = _current.get()
    if session.record is not record:
        session = replace(session, record=record, _kept={})
        _current.set(session)
    return session


def lift_limits() -> None:
    """Let judges spend freely from here on, to the end of the running task."""
    _current.set(replace(_current.get(), allowance=None))


def report_usage(usage: Usage) -> None:
    """Report to the open meter, if there is one, what a request cost."""
    meter = _current.get().meter
    if meter is not None:
        meter.add(usage)


def reserve(expected: Usage) -> Reservation:
    """Set aside what a request is expected to take, where an allowance limits it.

    Raises:
        JudgeError: as `Allowance.reserve`.
    """
    allowance = _current.get().allowance
    return _Free() if allowance is None else allowance.reserve(expected)


class _Free:
    """A reservation without limits."""

    def settle(self, used: Usage) -> None:
        """Nothing was set aside."""
