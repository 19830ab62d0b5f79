"""What waits to be sent, what is sent when, and how each item ends. It starts no thread, waits for nothing, and takes no lock.

A batch can fail in four ways:
- The tool names the items that failed: each is tried again by itself.
- The tool takes nothing at the moment: everything waits for it, and the items stay as they were.
- The tool rejects the batch for good: the batch is halved until the item that is the reason is alone.
- It fails for another reason: everything waits a little, the batch's items longer, and their next batch is half as large.
  So an item that makes a tool fail ends up alone and delays no other.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from ragspan.arguments import SECONDS, SOME_SECONDS, WHOLE
from ragspan.backoff import backoff

_LONGEST_PAUSE = 10.0  # seconds between tries of a tool that is away, so that its return is noticed soon
_MAX_RETRY_AFTER = 300.0  # seconds that a tool may ask to be left alone

DropReason: TypeAlias = Literal[
    "no_span", "queue_full", "queue_bytes", "replaced", "span_not_found", "unavailable", "failed", "shutdown"
]
"""Why an item was given up that nobody rejected: the last trouble, where its time ran out; `replaced` by a later one."""
Ending: TypeAlias = tuple[Literal["delivered", "rejected", "dropped"], str | None]
"""A result with its reason; a delivery has none."""
DeliveryState: TypeAlias = Literal["waiting", "settled", "lost"]
"""Of all scores of an answer together: one is on its way; each is delivered, rejected, or has no span; one was given up."""


class Deliverable(Protocol):
    """One thing to send. It should hold what is sent and nothing else, because it may wait."""

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
    """The tool has the item."""


@dataclass(frozen=True, slots=True)
class SpanNotFound:
    """The tool does not know the span or trace yet. The item is tried again, by itself."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The tool failed at the item and may succeed later. The item is tried again, by itself."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The tool will never take the item."""

    reason: str
    """One of few kinds: it becomes an attribute value."""


WriteResult: TypeAlias = Delivered | SpanNotFound | Failed | Rejected


class BatchRejected(Exception):  # noqa: N818 - it is a state, not a mistake
    """The tool rejects the batch for good, perhaps because of one item: it is split until that item is found.

    Its text is the reason, one of few kinds ("http_422"), for counts and the log: never an address, a key or a user's words.
    """


class Unavailable(Exception):  # noqa: N818 - likewise
    """The tool takes nothing at the moment: it is away, busy, or wants other credentials. Everything waits for it.

    For what may be the fault of an item in the batch, such as an error 500, raise anything else.

    Args:
        reason: the exception's text; one of few kinds, for counts and the log ("http_503").
        retry_after: seconds that the tool wants to be left alone; None if it does not say.
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
    """Items that are sent at once, at least 1, where the tool takes several in a request."""
    linger: float = 1.0
    """Seconds, 0 or more, that an item waits for others to go along with, and for its span to arrive."""
    retry_window: float = 600.0
    """Seconds, more than 0, from an item's emission on, for which it is tried again; then it is lost."""

    def __post_init__(self) -> None:
        WHOLE.check_fields(self, "queue_size", "queue_bytes", "batch_size")
        SECONDS.check_fields(self, "linger")
        SOME_SECONDS.check_fields(self, "retry_window")


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveryStats:
    """Where everything is that was emitted: each item is in exactly one of these."""

    waiting: int
    """Items that are being sent are included."""
    delivered: int
    rejected: Mapping[str, int]
    """By the tool's reason."""
    dropped: Mapping[str, int]
    """By reason, see `DropReason`."""


_Item = TypeVar("_Item", bound=Deliverable)


@dataclass(slots=True, kw_only=True, eq=False)
class Entry(Generic[_Item]):
    """An item with its state. All times are by the queue's clock."""

    item: _Item
    number: int
    """Items are numbered as they come, from 1."""
    due: float
    """When it is tried next."""
    ends: float
    """When it is given up."""
    max_batch_size: int
    tries: int = 0
    """Those that may have failed because of this item."""
    trouble: DropReason = "unavailable"
    """Why it is not delivered yet."""
    in_flight: bool = False
    missed: tuple[float, float] = (math.inf, -math.inf)
    """When its span was first not found, and when last."""
    ended: Ending | None = None

    def state(self, max_span_wait: float) -> DeliveryState:
        if self.ended is not None:
            is_lost = self.ended[0] == "dropped" and self.ended[1] != "span_not_found"
            return "lost" if is_lost else "settled"
        first, last = self.missed
        return "settled" if self.trouble == "span_not_found" and last - first >= max_span_wait else "waiting"


@dataclass(frozen=True, slots=True)
class DeliveryStatus:
    """Says what has become of the scores of one answer. May be asked from any thread; does no I/O."""

    entries: Sequence[Entry[Any]]
    is_lost: bool = False
    """The scores were not taken in."""

    def state(self, *, max_span_wait: float = math.inf) -> DeliveryState:
        """What has become of them.

        Args:
            max_span_wait: seconds from the first look to the last for which a score's span was not there, after which the
                score counts as settled. It is still tried; but a span that is sampled out on its way never comes.
        """
        states = {entry.state(max_span_wait) for entry in self.entries}
        if self.is_lost or "lost" in states:
            return "lost"
        return "waiting" if "waiting" in states else "settled"


class SendQueue(Generic[_Item]):
    """The items for one tool, from their emission to their end. Not safe to use from several threads at once."""

    def __init__(
        self,
        options: DeliveryOptions,
        *,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._options = options
        self._clock = clock
        self._draw = draw
        # By key, the oldest first. (A plain dictionary is slow to find its first entry after many deletions.)
        self._entries: OrderedDict[Hashable, Entry[_Item]] = OrderedDict()
        self._in_flight: set[Hashable] = set()
        self._bytes = 0
        self._paused_until = -math.inf
        self._failures = 0
        self._totals: Counter[Ending] = Counter()
        self._told: Counter[Ending] = Counter()
        self.is_closed = False
        """Whether each item gets one last try."""
        self.last_number = 0

    @property
    def in_flight(self) -> int:
        """How many items are being sent."""
        return len(self._in_flight)

    def is_past(self, number: int) -> bool:
        """Whether all items up to this number have ended."""
        oldest = next(iter(self._entries.values()), None)
        return oldest is None or oldest.number > number

    def lost(self) -> int:
        """How many items were dropped without a later one in their place."""
        return sum(n for (result, reason), n in self._totals.items() if result == "dropped" and reason != "replaced")

    def news(self) -> Mapping[Ending, int]:
        """How many items ended in each way since the last call."""
        news, self._told = self._totals - self._told, self._totals.copy()
        return news

    def stats(self) -> DeliveryStats:
        return DeliveryStats(
            waiting=len(self._entries),
            delivered=self._totals["delivered", None],
            rejected={str(reason): n for (result, reason), n in self._totals.items() if result == "rejected"},
            dropped={str(reason): n for (result, reason), n in self._totals.items() if result == "dropped"},
        )

    def put(self, items: Sequence[_Item]) -> Sequence[Entry[_Item]]:
        """Take items in. The oldest are dropped if there are too many."""
        now, options, entries = self._clock(), self._options, []
        for item in items:
            self.last_number += 1
            entry = Entry(
                item=item,
                number=self.last_number,
                due=now + options.linger,
                ends=now + options.retry_window,
                max_batch_size=options.batch_size,
            )
            if (earlier := self._entries.get(item.key)) is not None:
                self._end(earlier, ("dropped", "replaced"))
            self._entries[item.key] = entry
            self._bytes += item.size
            entries.append(entry)
        while (is_full := len(self._entries) > options.queue_size) or self._bytes > options.queue_bytes:
            oldest = next((entry for entry in self._entries.values() if not entry.in_flight), None)
            if oldest is None:
                break
            self._end(oldest, ("dropped", "queue_full" if is_full else "queue_bytes"))
        return entries

    def drop(self, number: int, reason: DropReason) -> None:
        """Count items that are not taken in."""
        self._totals += Counter({("dropped", reason): number})

    def make_all_due(self) -> None:
        """Make everything due now, whatever it waits for."""
        self._paused_until = -math.inf
        now = self._clock()
        for entry in self._entries.values():
            entry.due = min(entry.due, now)

    def close(self) -> None:
        """Give each item one last try, now; what is in flight has it already."""
        self.is_closed = True
        self.make_all_due()

    def give_up(self) -> None:
        """Drop what is not in flight. What is counts by its reply."""
        self.is_closed = True
        for entry in list(self._entries.values()):
            if not entry.in_flight:
                self._end(entry, ("dropped", "shutdown"))

    def next_due(self) -> float | None:
        """When there is something to send or to give up; None if nothing waits."""
        due = min((entry.due for entry in self._idle()), default=None)
        return None if due is None else max(due, self._paused_until)

    def take(self) -> list[Entry[_Item]]:
        """Give up what is too old, and take what is due with what will be soon; it is in flight until it is settled."""
        now = self._clock()
        for entry in [one for one in self._idle() if one.ends <= now]:
            self._end(entry, ("dropped", entry.trouble))
        limit = self._options.batch_size if now >= self._paused_until else 0
        soon = (entry for entry in self._idle() if entry.due <= now + self._options.linger)
        batch: list[Entry[_Item]] = []
        for entry in nsmallest(limit, soon, key=lambda entry: (entry.due, entry.number)):
            limit = min(limit, entry.max_batch_size)
            if len(batch) >= limit or (not batch and entry.due > now):
                break
            entry.in_flight = True
            self._in_flight.add(entry.item.key)
            batch.append(entry)
        return sorted(batch, key=lambda entry: entry.number)

    def settle(self, batch: Sequence[Entry[_Item]], results: Sequence[WriteResult] | BaseException) -> None:
        """Settle what the tool returned for the batch, or the exception that it raised."""
        is_halved = isinstance(results, BatchRejected) and len(batch) > 1
        if isinstance(results, BaseException):
            may_go_on = isinstance(results, BatchRejected)
            self._failures = 0 if may_go_on else self._failures + 1
            if not may_go_on and not self.is_closed:
                pause = backoff(self._failures, longest=_LONGEST_PAUSE, draw=self._draw)
                asked = getattr(results, "retry_after", None) if isinstance(results, Unavailable) else None
                self._paused_until = self._clock() + max(pause, min(asked or 0.0, _MAX_RETRY_AFTER))
        else:
            self._failures = 0
        for place, entry in enumerate(batch):
            if isinstance(results, Unavailable):
                entry.trouble = "unavailable"
            elif isinstance(results, BaseException):
                entry.max_batch_size = max(1, len(batch) // 2)
                if not is_halved:
                    rejected = isinstance(results, BatchRejected)
                    self._settle_one(entry, Rejected(str(results)) if rejected else Failed())
            else:
                self._settle_one(entry, results[place])
            entry.in_flight = False
            self._in_flight.discard(entry.item.key)
            if self.is_closed and entry.ended is None and not is_halved:
                self._end(entry, ("dropped", "shutdown"))

    def _settle_one(self, entry: Entry[_Item], result: WriteResult) -> None:
        if entry.ended is not None:  # replaced while it was in flight
            return
        match result:
            case Delivered():
                self._end(entry, ("delivered", None))
            case Rejected():
                self._end(entry, ("rejected", result.reason))
            case _:
                now = self._clock()
                entry.trouble = "failed"
                if isinstance(result, SpanNotFound):
                    entry.trouble, entry.missed = "span_not_found", (min(entry.missed[0], now), now)
                entry.tries += 1
                entry.due = min(now + backoff(entry.tries, draw=self._draw), entry.ends)

    def _end(self, entry: Entry[_Item], ending: Ending) -> None:
        entry.ended = ending
        del self._entries[entry.item.key]
        self._bytes -= entry.item.size
        self._totals[ending] += 1

    def _idle(self) -> Iterator[Entry[_Item]]:
        """What may be sent now or later, and is not too new for what is in flight under its key."""
        return (entry for key, entry in self._entries.items() if key not in self._in_flight)
