"""How a delivery to a tool is tried, ends and is counted."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from ragspan.arguments import SECONDS, SOME_SECONDS, WHOLE

DropReason: TypeAlias = Literal["no_span", "queue_bytes", "span_not_found", "unavailable", "failed", "shutdown"]
"""Why an item was given up that nobody rejected: the last trouble, where its time ran out."""
Ending: TypeAlias = tuple[Literal["delivered", "rejected", "dropped"], str | None]
"""A result with its reason; a delivery has none."""
Item = TypeVar("Item", bound=Any)
"""One thing to send, with its `size`: about how many bytes it takes. It should hold what is sent and nothing else: it may wait."""


@dataclass(slots=True, kw_only=True, eq=False)
class Entry(Generic[Item]):
    """An item with its state, at a sender. Items are numbered as they come, from 1."""

    item: Item
    number: int
    due: float
    """When it is tried next; it is given up when it `ends`."""
    ends: float
    max_batch_size: int = sys.maxsize
    tries: int = 0
    """Those that may have failed because of this item."""
    trouble: DropReason = "unavailable"
    """Why it is not delivered yet."""
    in_flight: bool = False
    ended: Ending | None = None


@dataclass(frozen=True)
class DeliveryStatus:
    """Says what has become of the scores of one answer. May be asked from any thread; does no I/O."""

    entries: Sequence[Entry[Any]]
    is_lost: bool = False
    """The scores were not taken in."""

    def state(self) -> Literal["waiting", "span_not_found", "settled", "lost"]:
        """What has become of all of them: one was given up; one is on its way; one looks for its span; all have ended."""
        waiting = {entry.trouble for entry in self.entries if entry.ended is None}
        ended = {entry.ended for entry in self.entries if entry.ended is not None}
        if self.is_lost or any(how == "dropped" and why != "span_not_found" for how, why in ended):
            return "lost"
        return "settled" if not waiting else "span_not_found" if waiting == {"span_not_found"} else "waiting"


@dataclass(frozen=True)
class Delivered:
    """The tool has the item."""


@dataclass(frozen=True)
class SpanNotFound:
    """The tool does not know the span or trace yet. The item is tried again, by itself."""


WriteResult: TypeAlias = Delivered | SpanNotFound


class BatchRejected(Exception):  # noqa: N818 - it is a state, not a mistake
    """The tool rejects the batch for good, perhaps because of one item: it is split until that item is found.

    The text of this and the next two is the reason, one of few kinds ("http_422"), for counts and the log: never an address, a key
    or a user's words.
    """


class Unavailable(Exception):  # noqa: N818 - likewise
    """The tool takes nothing at the moment: it is away, busy, or wants other credentials. Everything waits for it.

    For what may be the fault of an item in the batch, such as an error 500, raise anything else. `retry_after` is how many seconds
    the tool wants to be left alone; None if it does not say.
    """

    def __init__(self, reason: str, *, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class ExportError(Exception):
    """A server failed at a batch, or an exporter could not send it, perhaps because of one item."""


@dataclass(frozen=True, kw_only=True)
class DeliveryOptions:
    """How long items are retried, and how many may wait.

    Raises:
        ConfigurationError: a limit is not allowed; the message names it.
    """

    queue_bytes: int = 16 * 1024 * 1024
    """Bytes that what waits may take, about, at least 1: some 10,000 scores. Beyond, the oldest are dropped."""
    batch_size: int = 100
    """Items that are sent at once, at least 1, where the tool takes several in a request."""
    linger: float = 1.0
    """Seconds, 0 or more, that an item waits for others to go along with, and for its span to arrive."""
    retry_window: float = 600.0
    """Seconds, more than 0, from an item's emission on, for which it is tried again; then it is lost."""

    def __post_init__(self) -> None:
        WHOLE.check_fields(self, "queue_bytes", "batch_size")
        SECONDS.check_fields(self, "linger")
        SOME_SECONDS.check_fields(self, "retry_window")


@dataclass(frozen=True, kw_only=True)
class DeliveryStats:
    """Where everything is that was emitted: each item is in exactly one of these."""

    waiting: int
    """Items that are being sent are included."""
    delivered: int
    rejected: Mapping[str, int]
    """By the tool's reason."""
    dropped: Mapping[str, int]
    """By reason, see `DropReason`."""
