"""Who is told what becomes of the records in work: the backlog, or in a helper process the application behind it."""

from __future__ import annotations

from typing import Protocol

from ragspan.engine._queue import Item
from ragspan.engine.stats import DropReason
from ragspan.outcomes import ScoredRecord


class Account(Protocol):
    """Counts each record's end once, and what goes wrong on the way to it."""

    def has_in_work(self, item: Item) -> bool:
        """False once the item has ended in any way."""
        ...

    def end_scored(self, item: Item, scored: ScoredRecord | None = None) -> None: ...

    def end_with_nothing_to_score(self, item: Item) -> None: ...

    def end_dropped(self, item: Item, reason: DropReason) -> None: ...

    def went_wrong(self, place: str) -> None: ...
