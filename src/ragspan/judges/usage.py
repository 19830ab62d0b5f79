"""Meters what judging costs, whatever client a judge uses.

The engine opens a meter around each metric; clients and judges report what they spent to the meter of the task they
run in. Without an open meter a report goes nowhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from ragspan.outcomes import Usage


class UsageMeter:
    """Adds up what was spent while it was open."""

    def __init__(self) -> None:
        self.total = Usage()

    def add(self, usage: Usage) -> None:
        self.total += usage


_meter: ContextVar[UsageMeter | None] = ContextVar("ragspan_usage_meter", default=None)


@contextlib.contextmanager
def metered() -> Iterator[UsageMeter]:
    """Count what is spent inside, tasks and threads with a copied context included."""
    meter = UsageMeter()
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


def report_usage(usage: Usage) -> None:
    """Tell the open meter, if there is one, what a request cost."""
    meter = _meter.get()
    if meter is not None:
        meter.add(usage)
