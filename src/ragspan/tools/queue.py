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
from heapq import heapify, heappop, heappush
from itertools import takewhile
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


class DeliveryStatus:
    """Says what has become of the scores of one answer. May be asked from any thread; does no I/O.

    Args:
        entries: those of the scores.
        is_lost: the scores were not taken in.
    """

    def __init__(self, entries: Sequence[Entry[Any]], *, is_lost: bool = False) -> None:
        self._entries = entries
        self._is_lost = is_lost

    def state(self, *, max_span_wait: float = math.inf) -> DeliveryState:
        """What has become of them.

        Args:
            max_span_wait: seconds from the first look to the last for which a score's span was not there, after which the
                score counts as settled. It is still tried; but a span that is sampled out on its way never comes.
        """
        states = {entry.state(max_span_wait) for entry in self._entries}
        if self._is_lost or "lost" in states:
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
        self._in_flight: dict[Hashable, Entry[_Item]] = {}
        self._heap: list[tuple[float, int, Hashable]] = []
        """When each entry that is not in flight is due, with its number and key. What has ended is passed over later."""
        self._bytes = 0
        self._paused_until = -math.inf
        self._failures = 0
        self._is_closed = False
        self._totals: Counter[Ending] = Counter()
        self._told: Counter[Ending] = Counter()
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
        entries = [self._put(item) for item in items]
        while (is_full := len(self._entries) > self._options.queue_size) or self._bytes > self._options.queue_bytes:
            oldest = next(self._idle(), None)
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
        self._heap = [
            (entry.due, entry.number, entry.item.key) for entry in self._idle() if entry.item.key not in self._in_flight
        ]
        heapify(self._heap)

    def close(self) -> None:
        """Give up what is not in flight. What is counts by its reply, and is not tried again."""
        self._is_closed = True
        for entry in list(self._idle()):
            self._end(entry, ("dropped", "shutdown"))

    def next_due(self) -> float | None:
        """When there is something to send or to give up; None if nothing waits."""
        while self._heap:
            due, number, key = self._heap[0]
            if self._waiting(number, key) is not None:
                return max(due, self._paused_until)
            heappop(self._heap)
        return None

    def take(self) -> list[Entry[_Item]]:
        """Give up what is too old, and take what is due with what will be soon; it is in flight until it is settled."""
        due_until = now = self._clock()
        # All have equally much time, so those whose time is up are the first ones.
        for entry in list(takewhile(lambda entry: entry.ends <= now, self._idle())):
            self._end(entry, ("dropped", entry.trouble))
        batch: list[Entry[_Item]] = []
        limit = self._options.batch_size if now >= self._paused_until else 0
        while len(batch) < limit and self._heap and self._heap[0][0] <= due_until:
            _, number, key = self._heap[0]
            if (due := self._waiting(number, key)) is not None:
                if len(batch) >= due.max_batch_size:
                    break
                limit = min(limit, due.max_batch_size)
                due_until = now + self._options.linger
                due.in_flight, self._in_flight[key] = True, due
                batch.append(due)
            heappop(self._heap)
        return sorted(batch, key=lambda entry: entry.number)

    def settle(self, batch: Sequence[Entry[_Item]], results: Sequence[WriteResult] | BaseException) -> None:
        """Settle what the tool returned for the batch, or the exception that it raised."""
        if isinstance(results, Unavailable):
            self._pause(results.retry_after)
            for entry in batch:
                entry.trouble = "unavailable"
        elif isinstance(results, BatchRejected):
            self._failures = 0
            self._split(batch, Rejected(str(results)) if len(batch) == 1 else None)
        elif isinstance(results, BaseException):
            self._pause(None)
            self._split(batch, Failed())
        else:
            self._failures = 0
            for entry, result in zip(batch, results, strict=True):
                self._settle_one(entry, result)
        for entry in batch:
            entry.in_flight = False
            del self._in_flight[entry.item.key]
            if self._is_closed and entry.ended is None:
                self._end(entry, ("dropped", "shutdown"))
            following = self._entries.get(entry.item.key)  # itself, or a later one that came meanwhile
            if following is not None:
                self._push(following)

    def _split(self, batch: Sequence[Entry[_Item]], result: WriteResult | None) -> None:
        """Try the items of a batch that failed as a whole in smaller batches."""
        for entry in batch:
            entry.max_batch_size = max(1, len(batch) // 2)
            if result is not None:
                self._settle_one(entry, result)

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

    def _put(self, item: _Item) -> Entry[_Item]:
        now, options = self._clock(), self._options
        self.last_number += 1
        entry = Entry(
            item=item,
            number=self.last_number,
            due=now + options.linger,
            ends=now + options.retry_window,
            max_batch_size=options.batch_size,
        )
        earlier = self._entries.get(item.key)
        if earlier is not None:
            self._end(earlier, ("dropped", "replaced"))
        self._entries[item.key] = entry
        self._bytes += item.size
        if item.key not in self._in_flight:  # else it follows when that is settled
            self._push(entry)
        return entry

    def _end(self, entry: Entry[_Item], ending: Ending) -> None:
        entry.ended = ending
        del self._entries[entry.item.key]
        self._bytes -= entry.item.size
        self._totals[ending] += 1

    def _pause(self, retry_after: float | None) -> None:
        self._failures += 1
        pause = backoff(self._failures, longest=_LONGEST_PAUSE, draw=self._draw)
        self._paused_until = self._clock() + max(pause, min(retry_after or 0.0, _MAX_RETRY_AFTER))

    def _push(self, entry: Entry[_Item]) -> None:
        heappush(self._heap, (entry.due, entry.number, entry.item.key))

    def _waiting(self, number: int, key: Hashable) -> Entry[_Item] | None:
        """The entry of this key, unless the one of this number has ended."""
        entry = self._entries.get(key)
        return entry if entry is not None and entry.number == number else None

    def _idle(self) -> Iterator[Entry[_Item]]:
        return (entry for entry in self._entries.values() if not entry.in_flight)
