"""What is written when, without threads and by a clock that the tests set."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.tools import BatchRejected, Delivered, DeliveryOptions, Sender, SpanNotFound, Unavailable

NOTHING = {"waiting": 0, "delivered": 0, "rejected": {}, "dropped": {}}


def texts(batch):
    return [entry.item.text for entry in batch]


def pause(queue):
    """Seconds until something is due; None if nothing waits."""
    due = queue.next_due()
    return None if due == math.inf else max(0, due - queue._clock())


def refuse_nothing(batch):
    return [Delivered()] * len(batch)


def run(queue, clock, write, *, rounds=1000):
    """Write all there is, and let the time pass in between. The batches, with the seconds since the start."""
    began, written = clock.now, []
    for _ in range(rounds):
        seconds = pause(queue)
        if seconds is None:
            return written
        clock.advance(seconds)
        if seconds == 0:
            batch = queue.pop_due()
            if not batch:
                continue
            written.append((clock.now - began, texts(batch)))
            try:
                results = write(texts(batch))
            except Exception as error:
                results = error
            queue.apply_results(batch, results)
    raise AssertionError("it never comes to an end")


def missing(*names, until=math.inf):
    return lambda now, batch: [SpanNotFound() if text in names and now < until else Delivered() for text in batch]


def away(until, **given):
    return lambda now, batch: Unavailable("away", **given) if now < until else refuse_nothing(batch)


def choking(name, error):
    return lambda now, batch: error if name in batch else refuse_nothing(batch)


@pytest.mark.parametrize(
    ("options", "texts", "reply", "written", "ended"),
    [
        ({"batch_size": 2}, "abcde", missing(), [(0, "ab"), (0, "cd"), (0, "e")], {"delivered": 5}),
        # What is not there yet goes back and delays no other; a span that never comes is given up.
        ({}, "abc", missing("b", until=7), [(0, "abc"), (1, "b"), (3, "b"), (7, "b")], {"delivered": 3}),
        (
            {"retry_window": 100.0},
            "a",
            missing("a"),
            [(seconds, "a") for seconds in (0, 1, 3, 7, 15, 31, 61, 91)],
            {"dropped": {"span_not_found": 1}},
        ),
        # While the backend is away one batch is tried, every ten seconds at least; then everything is delivered.
        (
            {"batch_size": 2},
            "abcd",
            away(until=10),
            [*((seconds, "ab") for seconds in (0, 1, 3, 7, 15)), (15, "cd")],
            {"delivered": 4},
        ),
        (
            {"retry_window": 60.0},
            "a",
            away(until=math.inf),
            [(seconds, "a") for seconds in (0, 1, 3, 7, 15, 25, 35, 45, 55)],
            {"dropped": {"unavailable": 1}},
        ),
        # It gets the time that it asks for, but not all the time there is.
        ({}, "a", away(until=1, retry_after=42.0), [(0, "a"), (42, "a")], {"delivered": 1}),
        ({}, "a", away(until=1, retry_after=1e9), [(0, "a"), (300, "a")], {"delivered": 1}),
        # An item because of which batches are rejected is found at once.
        (
            {},
            "abcd",
            choking("b", BatchRejected("http_422")),
            [(0, "abcd"), (0, "ab"), (0, "a"), (0, "b"), (0, "cd")],
            {"delivered": 3, "rejected": {"http_422": 1}},
        ),
        # An item because of which the backend fails ends up alone, and delays the others by seconds.
        (
            {"retry_window": 10.0},
            "abcd",
            choking("b", RuntimeError("500")),
            [(0, "abcd"), (1, "ab"), (3, "cd"), (3, "a"), (3, "b"), (7, "b")],
            {"delivered": 3, "dropped": {"failed": 1}},
        ),
        ({"queue_bytes": 300}, "abcde", missing(), [(0, "cde")], {"delivered": 3, "dropped": {"queue_bytes": 2}}),
        ({"queue_bytes": 250}, "abc", missing(), [(0, "bc")], {"delivered": 2, "dropped": {"queue_bytes": 1}}),
    ],
)
def test_what_is_written_when_and_how_it_ends(make_queue, clock, letters, options, texts, reply, written, ended):
    queue = make_queue(**options)
    began = clock.now
    queue.put(letters(texts))

    def write(batch):
        said = reply(clock.now - began, batch)
        if isinstance(said, Exception):
            raise said
        return said

    assert [(seconds, "".join(batch)) for seconds, batch in run(queue, clock, write)] == written
    assert vars(queue.stats()) == NOTHING | ended


REPLIES = st.one_of(
    st.lists(st.sampled_from([Delivered(), SpanNotFound()]), max_size=4),
    st.sampled_from([Unavailable("away"), BatchRejected("no"), RuntimeError()]),
)


@given(
    steps=st.lists(st.one_of(st.integers(1, 6), REPLIES, st.floats(0, 40), st.just("hurry")), max_size=40),
    queue_bytes=st.integers(1, 6),
    batch_size=st.integers(1, 4),
)
def test_every_item_ends_exactly_once_whatever_happens(steps, queue_bytes, batch_size):
    now = [0.0]
    options = DeliveryOptions(queue_bytes=queue_bytes, batch_size=batch_size, linger=0.0, retry_window=100.0)
    queue = Sender(options, write=refuse_nothing, name="post", threads=0, clock=lambda: now[0])
    number = 0
    for step in steps:
        if isinstance(step, int):
            queue.put([SimpleNamespace(size=1) for _ in range(step)])
            number += step
        elif isinstance(step, float):
            now[0] += step
        elif step == "hurry":
            queue.flush(0.0)
        elif pause(queue) == 0 and (batch := queue.pop_due()):
            fits = isinstance(step, Exception) or len(step) == len(batch)
            queue.apply_results(batch, step if fits else ValueError())
        stats = queue.stats()
        ended = stats.delivered + sum(stats.rejected.values()) + sum(stats.dropped.values())
        assert number == stats.waiting + ended
        assert stats.waiting <= queue_bytes


def test_a_queue_that_closes_tries_each_item_once_more(make_queue, letters):
    written = []

    def write(batch):
        written.append([item.text for item in batch])
        return [Delivered(), *[SpanNotFound()] * (len(batch) - 1)]

    queue = make_queue(write, linger=60.0)
    queue.put(letters("abc"))

    queue.shutdown(0.0)

    assert written == [["a", "b", "c"]]
    assert vars(queue.stats()) == NOTHING | {"delivered": 1, "dropped": {"shutdown": 2}}


@pytest.mark.parametrize(
    ("reply", "delivered", "dropped"),
    [([Delivered()] * 2, 2, 1), ([Delivered(), SpanNotFound()], 1, 2), (Unavailable("away"), 0, 3)],
    ids=["arrived", "one arrived", "none arrived"],
)
def test_what_is_in_flight_when_the_queue_closes_counts_by_its_reply(make_queue, letters, reply, delivered, dropped):
    queue = make_queue(batch_size=2)
    queue.put(letters("abc"))
    batch = queue.pop_due()

    queue.shutdown(0.0, more=0.0)
    assert vars(queue.stats()) == NOTHING | {"waiting": 2, "dropped": {"shutdown": 1}}
    queue.apply_results(batch, reply)

    assert vars(queue.stats()) == NOTHING | {"delivered": delivered, "dropped": {"shutdown": dropped}}
