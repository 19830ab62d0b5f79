"""One record that is being judged: what its judges share, meter and may spend.

The engine opens a session around each metric of a record. A judge that spends money asks the session before each request and
reports what the request took. The session keeps what a judge prepares for the record, such as the prompt's common part or the
claims, and the record's other metrics find it there. Without a session nothing limits or counts what a judge spends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from ragspan.arguments import number
from ragspan.judges.judge_protocols import Named
from ragspan.records import RagRecord
from ragspan.usage import Usage

_T = TypeVar("_T")
Settle: TypeAlias = Callable[[Usage], None]
"""Puts what a request took in place of what was set aside for it. Only the first call counts."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens of a model.

    Raises:
        ConfigurationError: a price is not a number, or below 0.
    """

    input: float
    output: float
    cached_input: float | None = None
    """For input from the provider's prompt cache; with None it costs as much as other input."""

    def __post_init__(self) -> None:
        dollars = number("a number of dollars, 0 or more", lambda value: value >= 0).or_none()
        for name in ("input", "output", "cached_input"):
            dollars.check(f"a price's {name}", getattr(self, name))

    def of(self, usage: Usage) -> float:
        """The cost of this usage in US dollars."""
        cached = min(usage.cached_tokens, usage.input_tokens)
        cached_price = self.input if self.cached_input is None else self.cached_input
        dollars = (usage.input_tokens - cached) * self.input + cached * cached_price + usage.output_tokens * self.output
        return dollars / 1_000_000


@runtime_checkable
class Spender(Named, Protocol):
    """A judge whose requests cost money: it asks the allowance before each. Its price is None if it is not known."""

    @property
    def price(self) -> Price | None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgingSession:
    """What the judges of one record share, for one of its metrics."""

    record: RagRecord | None = None
    """None before the first question, if a program opens a session without a record."""
    meter: list[Usage] | None = None
    """What the metric's requests took."""
    allowance: Callable[[Usage], Settle] | None = None
    """Sets aside what a request of the metric is expected to take, whose `usd` is None if the price is not known. None sets no limit.

    Raises `BudgetExhausted` if there is not enough left, and `JudgeError` if money is limited and the price is not known.
    """
    _kept: dict[Hashable, Any] = field(default_factory=dict)
    """What is prepared for the record, for all of its metrics."""

    def expect(self, judge: object, question: str, wanted: Any = 1) -> None:
        """Let the judge know beforehand what a metric of the record will ask it, by the name of its method.

        Of the votes or ratings that are wanted the most count; or it is a question that the metric brings.
        """
        expected = self.expected(judge)
        known = expected.get(question)
        expected[question] = max(known, wanted) if isinstance(known, int) else wanted

    def expected(self, judge: object) -> dict[str, Any]:
        """What the record's metrics will ask this judge, by question."""
        return self.get_or_make(("expected", id(judge)), dict)

    def get_or_make(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """What is kept under this key for the record; made now if there is nothing."""
        kept: _T | None = self._kept.get(key)
        return self._kept.setdefault(key, make()) if kept is None else kept


_current: ContextVar[JudgingSession] = ContextVar("ragspan_judging_session", default=JudgingSession())  # noqa: B039 - without a record nothing is kept in it


@contextlib.contextmanager
def judging(session: JudgingSession) -> Iterator[JudgingSession]:
    """Use the session for what judges are asked inside, also in tasks and threads with a copied context."""
    token = _current.set(session)
    try:
        yield session
    finally:
        _current.reset(token)


def session_of(record: RagRecord) -> JudgingSession:
    """The session of this record. If there is none, one begins that lasts until the next record in this context."""
    session = _current.get()
    if session.record is not record:
        session = replace(session, record=record, _kept={})
        _current.set(session)
    return session


def report_usage(usage: Usage) -> None:
    """Add what a request took to the open meter, if there is one."""
    if (meter := _current.get().meter) is not None:
        meter.append(usage)


def reserve(expected: Usage) -> Settle:
    """Set aside what a request is expected to take, if an allowance limits it; errors as there."""
    allowance = _current.get().allowance
    return allowance(expected) if allowance is not None else lambda _: None
