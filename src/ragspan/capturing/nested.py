"""Requests of one framework inside those of another: an engine as a tool of another framework's agent is not a request of its own.

What the inner framework's integration notes is a log of its own, which belongs to the outer request and ends with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ragspan.capturing.log import NESTED, NestedLog, RequestLog, RunKey
from ragspan.records import RecordSink


class OuterRun(NamedTuple):
    """A run of another integration's request, in which something happens."""

    log: RequestLog
    run: RunKey


Finder: TypeAlias = Callable[[RecordSink], OuterRun | None]
"""Finds the live run that the caller is in, of a request for this sink."""

_finders: list[Finder] = []


def add_request_finder(find: Finder) -> None:
    """Have the requests of other integrations ask this one where they are."""
    if find not in _finders:
        _finders.append(find)


def request_around(sink: RecordSink) -> OuterRun | None:
    """The run of another integration that the caller is in."""
    if len(_finders) > 1:  # else there is no other one
        for find in _finders:
            found = find(sink)
            if found is not None and not found.log.over:
                return found
    return None


def begin_inside(
    around: OuterRun, run: RunKey, owner: object, make: Callable[[], RequestLog], end: Callable[[RequestLog], object]
) -> RequestLog:
    """The log of what an owner notes inside of another request, where this run begins."""
    inside: dict[int, NestedLog] = around.log.about.setdefault(NESTED, {})
    inner = inside.get(id(owner))
    if inner is None:
        made = NestedLog(make(), end, {})
        inner = inside.setdefault(id(owner), made)
        if inner is not made:  # another thread was first
            end(made.log)
    inner.around[run] = around.run
    return inner.log
