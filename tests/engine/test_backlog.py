"""The backlog by itself; the tests play the worker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ragspan.engine._backlog import Backlog
from ragspan.engine._deadline import Deadline
from ragspan.engine._queue import BoundedQueue, Item
from ragspan.engine._token_bucket import TokenBucket


@pytest.fixture
def calls() -> list[str]:
    """The calls that the worker got."""
    return []


@pytest.fixture
def backlog(calls: list[str]) -> Backlog:
    items = BoundedQueue(max_count=3, max_bytes=1000, drop="oldest")
    return Backlog(items, call_worker=lambda: calls.append("call"))


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


def test_the_worker_is_called_once_until_it_has_found_the_queue_empty(backlog: Backlog, calls: list[str]):
    backlog.submit(an_item())
    backlog.submit(an_item())
    assert calls == ["call"]

    while item := backlog.take():
        backlog.end_scored(item)
    backlog.submit(an_item())
    assert calls == ["call", "call"]


def test_a_worker_that_could_not_be_called_is_called_by_the_next_submit():
    calls: list[str] = []

    def fail_once() -> None:
        calls.append("call")
        if len(calls) == 1:
            raise RuntimeError

    backlog = Backlog(BoundedQueue(max_count=3, max_bytes=1000, drop="oldest"), call_worker=fail_once)
    backlog.submit(an_item())
    backlog.submit(an_item())

    assert calls == ["call", "call"]
    assert backlog.stats().queued == 2


def test_somebody_who_waits_calls_a_worker_that_has_died(backlog: Backlog, calls: list[str]):
    backlog.submit(an_item())
    backlog.let_worker_sleep()
    backlog.wait_until_out(Deadline(0))

    assert calls == ["call", "call"]


def test_a_worker_that_leaves_loses_what_it_had_in_work_and_nothing_else(backlog: Backlog, calls: list[str]):
    backlog.submit(an_item())
    backlog.submit(an_item())
    backlog.take()
    backlog.worker_left()

    assert backlog.stats().dropped == {"worker_error": 1}
    assert backlog.stats().queued == 1
    assert calls == ["call", "call"]


def test_more_than_the_rate_is_refused_and_counted(clock):
    items = BoundedQueue(max_count=10, max_bytes=1000, drop="oldest")
    admission = TokenBucket(rate_per_second=2.0, capacity=2.0, clock=clock)
    backlog = Backlog(items, call_worker=lambda: None, admission=admission)
    for _ in range(5):
        backlog.submit(an_item())
    assert backlog.stats().dropped == {"rate_limited": 3}

    clock.advance(0.5)
    for _ in range(2):
        backlog.submit(an_item())
    stats = backlog.stats()
    assert (stats.submitted, stats.queued, stats.dropped) == (7, 3, {"rate_limited": 4})


def test_what_is_refused_for_another_reason_does_not_use_up_the_rate(clock):
    items = BoundedQueue(max_count=1, max_bytes=1000, drop="newest")
    backlog = Backlog(items, call_worker=lambda: None, admission=TokenBucket(1.0, 2.0, clock))
    for _ in range(3):
        backlog.submit(an_item())
    backlog.take()
    backlog.submit(an_item())

    assert backlog.stats().dropped == {"queue_full": 2}


def test_who_waits_is_told_when_everything_before_is_out_and_not_later(backlog: Backlog):
    backlog.submit(an_item())
    first = backlog.take()

    def meanwhile() -> None:
        backlog.submit(an_item())
        backlog.end_scored(first)

    assert backlog.wait_until_out(MeanwhileDeadline(meanwhile))
    assert backlog.stats().queued == 1


@pytest.mark.parametrize("in_work", [0, 1])
def test_who_waits_is_not_told_while_something_is_left(backlog: Backlog, in_work: int):
    backlog.submit(an_item())
    for _ in range(in_work):
        backlog.take()

    assert not backlog.wait_until_out(MeanwhileDeadline(lambda: backlog.submit(an_item())))


def test_records_may_end_in_any_order(backlog: Backlog):
    backlog.submit(an_item())
    backlog.submit(an_item())
    first, second = backlog.take(), backlog.take()
    backlog.end_scored(second)
    assert not backlog.wait_until_out(Deadline(0))

    backlog.end_scored(first)
    assert backlog.wait_until_out(Deadline(0))


@pytest.mark.parametrize(
    "happens",
    [
        lambda backlog, item: backlog.end_scored(item),
        lambda backlog, item: backlog.end_with_nothing_to_score(item),
        lambda backlog, item: backlog.end_dropped(item, "capture_error"),
        lambda backlog, item: backlog.worker_left(),
        lambda backlog, item: backlog.abandon(),
    ],
)
def test_a_record_is_out_however_it_ends(backlog: Backlog, happens: Callable[[Backlog, Item], None]):
    backlog.submit(an_item())
    item = backlog.take()

    assert backlog.wait_until_out(MeanwhileDeadline(lambda: happens(backlog, item)))


def test_what_is_evicted_is_out_as_well(backlog: Backlog):
    backlog.submit(an_item())

    assert backlog.wait_until_out(MeanwhileDeadline(lambda: [backlog.submit(an_item()) for _ in range(3)]))
    assert backlog.stats().dropped == {"queue_full": 1}


def test_a_record_that_was_abandoned_cannot_end_again(backlog: Backlog):
    backlog.submit(an_item())
    backlog.submit(an_item())
    item = backlog.take()
    assert backlog.has_in_work(item)

    assert backlog.abandon() == 2
    assert not backlog.has_in_work(item)
    backlog.end_scored(item)
    stats = backlog.stats()
    assert (stats.submitted, stats.queued, stats.in_flight, stats.finished) == (2, 0, 0, 0)
    assert stats.dropped == {"shutdown": 2}


def test_captures_that_could_not_be_counted_are_counted_with_the_next_step(backlog: Backlog):
    backlog.uncounted += 2
    backlog.submit(an_item())

    assert backlog.stats().submitted == 3
    assert backlog.stats().dropped == {"capture_error": 2}


def test_the_reason_of_the_first_close_stays(backlog: Backlog):
    backlog.close("not_running")
    backlog.close("shutdown")
    backlog.submit(an_item())

    assert backlog.stats().dropped == {"not_running": 1}
