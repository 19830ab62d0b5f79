"""What a backend says of itself: how one batch is written, and what became of each item in it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar


class Deliverable(Protocol):
    """One thing to write: an annotation, an assessment. It should hold what is written and nothing else, for it may wait."""

    @property
    def key(self) -> Hashable:
        """What it is written to, such as the span and the name of the score. Items of one key are written in order."""
        ...

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes, as the bound on what waits counts them."""
        ...


@dataclass(frozen=True, slots=True)
class Delivered:
    """The backend has it."""


@dataclass(frozen=True, slots=True)
class NotThereYet:
    """The backend does not know the span or trace yet; the item is tried again, by itself, at a later time."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The backend failed at it and may do better later; the item is tried again, by itself, at a later time."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The backend will never take it."""

    reason: str
    """One of few kinds: it becomes an attribute value."""


WriteResult: TypeAlias = Delivered | NotThereYet | Failed | Refused


class Unavailable(Exception):  # noqa: N818 - it tells of a state, not of a mistake
    """The backend takes nothing at the moment, whatever it is: it is away, busy, or wants other credentials.

    Everything waits and is tried again. For what may be the fault of an item in the batch, such as an error 500, raise
    anything else: the items are then tried in ever smaller company.

    Args:
        reason: one of few kinds, for the log ("ConnectError", "http_503"); never an address or a key.
        retry_after: seconds that the backend asks to be left alone; None if it does not say.
    """

    def __init__(self, reason: str, *, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after


class BatchRefused(Exception):  # noqa: N818 - as above
    """The backend refused the whole batch for good, perhaps for the sake of one item: it is split until that is found.

    Args:
        reason: of the refusal, as in `Refused`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


_Item_contra = TypeVar("_Item_contra", bound=Deliverable, contravariant=True)


class Destination(Protocol[_Item_contra]):
    """A connection to a backend. Used by one thread at a time, with instrumentation suppressed."""

    def write(self, batch: Sequence[_Item_contra]) -> Sequence[WriteResult]:
        """Write the batch, which has at least one item and no two of one key; what became of each, in order.

        Writing an item a second time must not make a second one there: an answer may get lost on its way back. It may
        take its time, but must have a limit of its own for a backend that never answers.

        Raises:
            Unavailable: the backend takes nothing at the moment.
            BatchRefused: it will never take this batch as it is.
            Exception: the batch failed as a whole, and may do better in parts or later.
        """
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...
