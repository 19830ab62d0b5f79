"""The queue by itself; the tests play the worker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ragspan.engine.record_queue import Item, RecordQueue
from ragspan.engine.threads import Deadline


@pytest.fixture
def calls() -> list[str]:
    """How often the worker was woken."""
    return []


@pytest.fixture
def records(calls: list[str]) -> RecordQueue:
    return RecordQueue(max_count=3, max_bytes=1000, drop="oldest", wake_worker=lambda: calls.append("wake"))


def an_item() -> Item:
    return Item(object(), 1)  # type: ignore[arg-type]


class MeanwhileDeadline(Deadline):
    """A time in which something happens: between the moment when somebody begins to wait and the end."""

    def __init__(self, happens: Callable[[], None]) -> None:
        super().__init__(0)
        self._happens = happens

    @property
    def remaining(self) -> float:
        self._happens()
        return 0.0


def test_who_waits_is_told_when_everything_before_is_out_and_not_later(records: RecordQueue):
    records.submit(an_item())
    first = records.take()

    def meanwhile() -> None:
        records.submit(an_item())
        records.end(first)

    assert records.wait_until_out(MeanwhileDeadline(meanwhile))
    assert records.stats.queued == 1


@pytest.mark.parametrize("is_in_work", [False, True])
def test_the_bytes_of_a_cancelled_record_are_given_back(records: RecordQueue, is_in_work: bool):
    item = Item(object(), 1000, on_end=lambda _: None)  # type: ignore[arg-type]
    records.submit(item)
    if is_in_work:
        assert records.take() is item
    records.cancel(item)

    assert records.bytes == 0
    records.submit(Item(object(), 1000))  # type: ignore[arg-type]
    assert (records.stats.queued, dict(records.stats.dropped)) == (1, {"cancelled": 1})
