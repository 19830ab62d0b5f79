from __future__ import annotations

import pytest

from ragspan.engine._queue import BoundedQueue, Item


def an_item(size: int = 1) -> Item:
    return Item(object(), size)  # type: ignore[arg-type]


def a_queue(drop: str = "oldest") -> BoundedQueue:
    return BoundedQueue(max_count=2, max_bytes=100, drop=drop)  # type: ignore[arg-type]


def test_items_come_out_in_the_order_they_went_in():
    items, queue = [an_item(), an_item()], a_queue()
    for item in items:
        queue.append(item)

    assert [queue.take(), queue.take(), queue.take()] == [*items, None]


def test_bytes_are_those_of_the_items_in_it():
    queue = a_queue()
    queue.append(an_item(30))
    queue.append(an_item(12))
    queue.take()

    assert queue.bytes == 12


@pytest.mark.parametrize(("size", "short_of"), [(70, None), (71, "queue_bytes")])
def test_it_is_full_when_one_byte_more_would_not_fit(size: int, short_of: str | None):
    queue = a_queue()
    queue.append(an_item(30))

    assert queue.room_for(size) == short_of


def test_it_is_full_when_it_holds_as_many_items_as_it_may():
    queue = a_queue()
    queue.append(an_item())
    queue.append(an_item())

    assert queue.room_for(1) == "queue_full"


def test_oldest_lets_in_what_fits_once_others_have_gone():
    queue = a_queue("oldest")
    queue.append(an_item(100))

    assert queue.must_refuse(100) is None


def test_newest_refuses_what_does_not_fit_as_things_are():
    queue = a_queue("newest")
    queue.append(an_item(100))

    assert queue.must_refuse(1) == "queue_bytes"


@pytest.mark.parametrize("drop", ["oldest", "newest"])
def test_what_is_larger_than_the_whole_queue_is_never_let_in(drop: str):
    assert a_queue(drop).must_refuse(101) == "queue_bytes"


def test_taking_everything_leaves_it_empty():
    item, queue = an_item(5), a_queue()
    queue.append(item)

    assert list(queue.take_all()) == [item]
    assert (len(queue), queue.bytes, queue.first) == (0, 0, None)
