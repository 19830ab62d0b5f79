"""Where a judge computes that needs the processor rather than a network.

The embedded judge and local classifiers take milliseconds to seconds of processor time for a record. Inside a serving
process that time is the requests' own: all threads share one interpreter. So an engine offers a place, a helper process
as a rule, and the methods marked with `computed` run there. Asked without an engine they run where they are called.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar, cast

from ragspan.records import RagRecord

_M = TypeVar("_M", bound=Callable[..., Coroutine[Any, Any, object]])
_C = TypeVar("_C", bound=Callable[..., object])


class ComputingPlace(Protocol):
    """Somewhere that judges compute."""

    async def compute(
        self, judge: object, question: str, record: RagRecord, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> object:
        """What `judge.<question>(record, *args, **kwargs)` returns there.

        Raises:
            JudgeError: it raised there, or there is no answer to be had.
        """
        ...


_place: ContextVar[ComputingPlace | None] = ContextVar("ragspan_computing_place", default=None)


@contextlib.contextmanager
def computing_at(place: ComputingPlace | None) -> Iterator[None]:
    """Let marked methods that are called inside run there, tasks with a copied context included; None means here."""
    token = _place.set(place)
    try:
        yield
    finally:
        _place.reset(token)


def computed(method: _M) -> _M:
    """Mark a judge's method as one that computes.

    The judge has to pickle: where it runs, a copy of it answers. The copy sees of the record what judges ask about: the
    question, the contexts and the response.
    """

    @functools.wraps(method)
    async def ask(self: object, record: RagRecord, *args: Any, **kwargs: Any) -> object:
        place = _place.get()
        if place is None:
            return await method(self, record, *args, **kwargs)
        return await place.compute(self, method.__name__, record, args, kwargs)

    return cast("_M", ask)


def has_own_thread(method: _C) -> _C:
    """Mark a judge's method, before `computed` does, as one that only waits for a thread of the judge's own.

    It may be asked in any event loop, any number of times at once. A place that is no other process adds nothing to it.
    """
    vars(method)["has_own_thread"] = True
    return method


def only_waits(method: Callable[..., object]) -> bool:
    """Whether it is marked with `has_own_thread`."""
    return getattr(method, "has_own_thread", False)
