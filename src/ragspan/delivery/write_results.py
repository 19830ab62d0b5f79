"""What becomes of what is written: of one item, of a batch, and of all that a writer was given."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from ragspan.arguments import SECONDS, SOME_SECONDS, WHOLE


class Deliverable(Protocol):
    """One thing to write. It should hold what is written and nothing else, because it may wait."""

    @property
    def key(self) -> Hashable:
        """What it is written to, such as the span and the name of the score. A later item of a key replaces one that waits."""
        ...

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes, for the bound on what waits."""
        ...


@dataclass(frozen=True, slots=True)
class Delivered:
    """The backend has the item."""


@dataclass(frozen=True, slots=True)
class SpanNotFound:
    """The backend does not know the span or trace yet. The item is tried again, by itself."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The backend failed at the item and may succeed later. The item is tried again, by itself."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The backend will never take the item."""

    reason: str
    """One of few kinds: it becomes an attribute value."""


WriteResult: TypeAlias = Delivered | SpanNotFound | Failed | Rejected


class BatchRejected(Exception):  # noqa: N818 - it is a state, not a mistake
    """The backend rejects the batch for good, perhaps because of one item: it is split until that item is found.

    Its text is the reason, one of few kinds ("http_422"), for counts and the log: never an address, a key or a user's words.
    """


class Unavailable(Exception):  # noqa: N818 - likewise
    """The backend takes nothing at the moment: it is away, busy, or wants other credentials. Everything waits for it.

    For what may be the fault of an item in the batch, such as an error 500, raise anything else: the items are then tried
    in smaller and smaller batches.

    Args:
        reason: the exception's text; one of few kinds, for counts and the log ("ConnectError", "http_503").
        retry_after: seconds that the backend wants to be left alone; None if it does not say.
    """

    def __init__(self, reason: str, *, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class ExportError(Exception):
    """An exporter could not send a batch, perhaps because of one item. Its text is the reason, one of few kinds, for the log."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveryOptions:
    """How long items are retried, and how many may wait.

    Raises:
        ConfigurationError: a limit is not allowed; the message names it.
    """

    queue_size: int = 10_000
    """Items that may wait, at least 1; beyond, the oldest are dropped."""
    queue_bytes: int = 16 * 1024 * 1024
    """Bytes that they may take, at least 1; beyond, the oldest are dropped."""
    batch_size: int = 100
    """Items that are written at once, at least 1."""
    linger: float = 1.0
    """Seconds, 0 or more, that an item waits for others to go along with, and for its span to arrive."""
    retry_window: float = 600.0
    """Seconds, more than 0, from an item's emission on, for which it is tried again; then it is lost."""

    def __post_init__(self) -> None:
        WHOLE.check_fields(self, "queue_size", "queue_bytes", "batch_size")
        SECONDS.check_fields(self, "linger")
        SOME_SECONDS.check_fields(self, "retry_window")


DropReason: TypeAlias = Literal[
    "no_span", "queue_full", "queue_bytes", "replaced", "span_not_found", "unavailable", "failed", "shutdown"
]
"""Why an item was given up that nobody rejected: the last trouble, where its time ran out; `replaced` by a later one."""
Ending: TypeAlias = tuple[Literal["delivered", "rejected", "dropped"], str | None]
"""A result with its reason; a delivery has none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveryStats:
    """Where everything is that was emitted."""

    waiting: int
    """Items that are being written are included."""
    delivered: int
    rejected: Mapping[str, int]
    """By the backend's reason."""
    dropped: Mapping[str, int]
    """By reason, see `DropReason`."""

    @property
    def offered(self) -> int:
        """All items: `waiting + delivered + rejected + dropped`."""
        return self.waiting + self.delivered + sum(self.rejected.values()) + sum(self.dropped.values())
