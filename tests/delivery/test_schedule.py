"""What is written when, without threads and by a clock that the tests set."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.delivery import BatchRefused, Delivered, DeliveryOptions, Failed, NotThereYet, Refused, Unavailable
from ragspan.delivery._backoff import Backoff
from ragspan.delivery._schedule import Schedule
from ragspan.delivery.stats import Counts


def texts(batch):
    return [entry.item.text for entry in batch]


def refuse_nothing(batch):
    return [Delivered()] * len(batch)


def run(schedule, clock, write, *, rounds=1000):
    """Write all there is, and let the time pass in between. The batches, with the seconds since the start."""
    began, written = clock.now, []
    for _ in range(rounds):
        pause = schedule.wait()
        if pause is None:
            return written
        clock.advance(pause)
        if pause == 0:
            batch = schedule.begin()
            written.append((clock.now - began, texts(batch)))
            try:
                results = write(texts(batch))
            except Exception as error:
                results = error
            schedule.settle(batch, results)
    raise AssertionError("it never comes to an end")


def test_what_was_put_is_delivered_in_order_and_in_batches(make_schedule, clock, letters):
    schedule = make_schedule(batch_size=2)
    schedule.put(letters("abcde"))

    assert [batch for _, batch in run(schedule, clock, refuse_nothing)] == [["a", "b"], ["c", "d"], ["e"]]
    assert schedule.stats().delivered == 5


def test_an_item_waits_for_others_to_go_along(make_schedule, clock, letters):
    schedule = make_schedule(linger=1.0)
    schedule.put(letters("a"))
    clock.advance(0.75)
    schedule.put(letters("b"))

    assert run(schedule, clock, refuse_nothing) == [(0.25, ["a", "b"])]


def test_what_is_not_there_yet_goes_back_and_holds_nobody_up(make_schedule, clock, letters):
    schedule = make_schedule()
    schedule.put(letters("abc"))
    replies = {"b": iter([NotThereYet(), NotThereYet(), NotThereYet(), Delivered()])}

    written = run(schedule, clock, lambda batch: [next(replies.get(text, iter([Delivered()]))) for text in batch])

    assert written == [(0, ["a", "b", "c"]), (1, ["b"]), (3, ["b"]), (7, ["b"])]
    assert schedule.stats().delivered == 3


def test_a_span_that_never_comes_is_given_up_when_the_window_is_over(make_schedule, clock, letters):
    schedule = make_schedule(retry_window=100.0)
    schedule.put(letters("a"))

    written = run(schedule, clock, lambda batch: [NotThereYet()] * len(batch))

    assert [seconds for seconds, _ in written] == [0, 1, 3, 7, 15, 31, 61, 91]
    assert schedule.stats().dropped == {"span_not_found": 1}
    assert clock.now == 1100


def fate(schedule, entries, *, span_patience=math.inf):
    return schedule.fate_of(entries, span_patience)


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([Delivered(), Delivered()], "settled"),
        ([Delivered(), Refused("http_422")], "settled"),
        ([Delivered(), Failed()], "waiting"),
        ([Delivered(), NotThereYet()], "waiting"),
        (Unavailable("down"), "waiting"),
        (RuntimeError(), "waiting"),
        (BatchRefused("http_413"), "waiting"),
    ],
)
def test_items_have_one_fate_together(make_schedule, letters, results, expected):
    schedule = make_schedule()
    entries = schedule.put(letters("ab"))
    assert fate(schedule, entries) == "waiting"

    schedule.settle(schedule.begin(), results)

    assert fate(schedule, entries) == expected


def test_no_items_are_settled(make_schedule):
    assert fate(make_schedule(), []) == "settled"


def test_the_fate_of_some_does_not_hang_on_others(make_schedule, letters):
    schedule = make_schedule()
    first, second = schedule.put(letters("a")), schedule.put(letters("b"))

    schedule.settle(schedule.begin(), [Failed(), Delivered()])

    assert (fate(schedule, first), fate(schedule, second)) == ("waiting", "settled")


def look(schedule, clock, result, *, after=0.0):
    clock.advance(after)
    schedule.settle(schedule.begin(), [result])


def test_who_asks_need_not_wait_for_a_span_that_does_not_come(make_schedule, clock, letters):
    schedule = make_schedule()
    entries = schedule.put(letters("a"))

    look(schedule, clock, NotThereYet(), after=60.0)
    assert fate(schedule, entries, span_patience=5.0) == "waiting"  # it may have come since
    look(schedule, clock, NotThereYet(), after=4.0)
    assert fate(schedule, entries, span_patience=5.0) == "waiting"
    look(schedule, clock, NotThereYet(), after=4.0)

    assert fate(schedule, entries, span_patience=5.0) == "settled"
    assert fate(schedule, entries) == "waiting"
    look(schedule, clock, Failed(), after=8.0)
    assert fate(schedule, entries, span_patience=5.0) == "waiting"  # there it is


def test_a_score_behind_another_of_its_span_shares_its_wait(make_schedule, clock, letter):
    schedule = make_schedule()
    first = schedule.put([letter("first", key="span")])
    look(schedule, clock, NotThereYet())
    second = schedule.put([letter("second", key="span")])
    look(schedule, clock, NotThereYet(), after=6.0)

    assert [fate(schedule, entries, span_patience=5.0) for entries in (first, second)] == ["settled", "settled"]
    look(schedule, clock, Delivered(), after=6.0)
    assert [fate(schedule, entries, span_patience=5.0) for entries in (first, second)] == ["settled", "waiting"]


@pytest.mark.parametrize(
    ("result", "expected"), [(NotThereYet(), "settled"), (Failed(), "lost"), (Unavailable("down"), "lost")]
)
def test_what_was_given_up_is_lost_unless_there_is_no_span_for_it(make_schedule, clock, letters, result, expected):
    schedule = make_schedule(retry_window=5.0)
    entries = schedule.put(letters("a"))

    run(schedule, clock, lambda batch: result if isinstance(result, Unavailable) else [result])

    assert len(schedule) == 0
    assert fate(schedule, entries) == expected


def test_what_had_to_make_room_is_lost(make_schedule, letter, letters):
    schedule = make_schedule(queue_size=2, queue_bytes=1000)
    first = schedule.put(letters("ab"))
    second = schedule.put(letters("c"))
    huge = schedule.put([letter("huge", size=1001)])

    assert [fate(schedule, entries) for entries in (first, second, huge)] == ["lost", "waiting", "lost"]
    schedule.abandon("shutdown")
    assert fate(schedule, second) == "lost"


def test_an_item_at_which_the_backend_failed_goes_back_and_holds_nobody_up(make_schedule, clock, letters):
    schedule = make_schedule(retry_window=5.0)
    schedule.put(letters("ab"))

    written = run(schedule, clock, lambda batch: [Failed() if text == "a" else Delivered() for text in batch])

    assert written == [(0, ["a", "b"]), (1, ["a"]), (3, ["a"])]
    assert schedule.stats().dropped == {"failed": 1}


def test_nothing_is_tried_while_the_backend_is_away_and_everything_is_delivered_when_it_is_back(
    make_schedule, clock, letters
):
    schedule = make_schedule(batch_size=2)
    schedule.put(letters("abcd"))

    def write(batch):
        if clock.now < 1010:
            raise Unavailable("ConnectError")
        return refuse_nothing(batch)

    written = run(schedule, clock, write)

    assert written == [
        (0, ["a", "b"]),
        (1, ["a", "b"]),
        (3, ["a", "b"]),
        (7, ["a", "b"]),
        (15, ["a", "b"]),
        (15, ["c", "d"]),
    ]
    assert schedule.stats().delivered == 4


def test_a_backend_that_is_away_is_looked_for_every_ten_seconds_at_least(make_schedule, clock, letters):
    schedule = make_schedule(retry_window=60.0)
    schedule.put(letters("a"))

    def write(batch):
        raise Unavailable("ConnectError")

    assert [seconds for seconds, _ in run(schedule, clock, write)] == [0, 1, 3, 7, 15, 25, 35, 45, 55]


def test_a_backend_that_stays_away_costs_what_was_put_within_the_window(make_schedule, clock, letters):
    schedule = make_schedule(retry_window=50.0)
    schedule.put(letters("ab"))

    def write(batch):
        raise Unavailable("ConnectError")

    run(schedule, clock, write)

    assert schedule.stats().dropped == {"unavailable": 2}


def test_a_backend_that_asks_for_time_gets_it(make_schedule, clock, letters):
    schedule = make_schedule()
    schedule.put(letters("a"))
    replies = iter([Unavailable("http_429", retry_after=42.0), None])

    def write(batch):
        if error := next(replies):
            raise error
        return refuse_nothing(batch)

    assert run(schedule, clock, write) == [(0, ["a"]), (42, ["a"])]


def test_a_backend_cannot_ask_for_all_the_time_there_is(make_schedule, clock, letters):
    schedule = make_schedule()
    schedule.put(letters("a"))
    schedule.settle(schedule.begin(), Unavailable("http_429", retry_after=1e9))

    assert schedule.wait() == 300


def test_the_item_for_whose_sake_a_batch_is_refused_is_found_at_once(make_schedule, clock, letters):
    schedule = make_schedule()
    schedule.put(letters("abcdefgh"))

    def write(batch):
        if "f" in batch:
            raise BatchRefused("http_422")
        return refuse_nothing(batch)

    written = run(schedule, clock, write)

    assert {seconds for seconds, _ in written} == {0}
    assert schedule.stats().delivered == 7
    assert schedule.stats().refused == {"http_422": 1}


def test_an_item_that_makes_the_backend_fail_ends_up_alone_and_holds_the_others_up_for_seconds(
    make_schedule, clock, letters
):
    schedule = make_schedule(retry_window=600.0)
    schedule.put(letters("abcdefgh"))
    done = {}

    def write(batch):
        if "f" in batch:
            raise RuntimeError("500")
        done.update(dict.fromkeys(batch, clock.now - 1000))
        return refuse_nothing(batch)

    run(schedule, clock, write)

    assert sorted(done) == list("abcdegh")
    assert max(done.values()) < 15
    assert schedule.stats().dropped == {"failed": 1}


def test_what_comes_after_an_item_that_makes_the_backend_fail_does_not_share_its_lot(make_schedule, clock, letters):
    schedule = make_schedule()
    schedule.put(letters("a"))
    for _ in range(3):
        clock.advance(schedule.wait())
        schedule.settle(schedule.begin(), RuntimeError())
    clock.advance(schedule.wait())
    schedule.put(letters("bc"))

    assert texts(schedule.begin()) == ["a"]
    assert texts(schedule.begin()) == ["b", "c"]


def test_after_a_failure_all_others_wait_a_little_too(make_schedule, letters):
    schedule = make_schedule(batch_size=1)
    schedule.put(letters("ab"))

    schedule.settle(schedule.begin(), RuntimeError())

    assert schedule.wait() == 1


def test_an_item_that_should_go_alone_joins_nobody(make_schedule, clock, letters):
    schedule = make_schedule()
    schedule.put(letters("ab"))
    schedule.settle(schedule.begin(), [NotThereYet(), Delivered()])
    schedule.put(letters("cd"))
    schedule.settle(schedule.begin(), RuntimeError())  # "c" and "d" are to go alone from here on
    clock.advance(1)

    assert [texts(schedule.begin()) for _ in range(3)] == [["a"], ["c"], ["d"]]


def test_what_is_being_written_when_its_time_is_up_is_not_given_up(make_schedule, clock, letters):
    schedule = make_schedule(retry_window=10.0)
    schedule.put(letters("a"))
    batch = schedule.begin()
    clock.advance(11)

    assert schedule.wait() is None
    schedule.settle(batch, [Delivered()])
    assert schedule.stats().delivered == 1


@pytest.mark.parametrize("nonsense", [None, [], [Delivered()] * 3, ["delivered", "delivered"]], ids=repr)
def test_what_a_destination_returns_must_fit_the_batch(make_schedule, clock, letters, nonsense):
    schedule = make_schedule()
    schedule.put(letters("ab"))

    schedule.settle(schedule.begin(), nonsense)

    assert schedule.stats().waiting == 2
    assert schedule.wait() > 0


def test_items_of_one_key_are_written_one_after_the_other(make_schedule, clock, letter):
    schedule = make_schedule()
    schedule.put([letter("first", key="span"), letter("second", key="span"), letter("other")])
    replies = {"first": iter([NotThereYet(), Delivered()])}

    written = run(schedule, clock, lambda batch: [next(replies.get(text, iter([Delivered()]))) for text in batch])

    assert written == [(0, ["first", "other"]), (1, ["first"]), (1, ["second"])]


def test_when_too_many_wait_the_oldest_are_dropped(make_schedule, letters):
    schedule = make_schedule(queue_size=3)
    schedule.put(letters("abcde"))

    assert texts(schedule.begin()) == ["c", "d", "e"]
    assert schedule.stats().dropped == {"queue_full": 2}


def test_when_what_waits_takes_too_much_memory_the_oldest_are_dropped(make_schedule, letter):
    schedule = make_schedule(queue_bytes=1000)
    schedule.put([letter("a", size=600), letter("b", size=300), letter("c", size=500)])

    assert texts(schedule.begin()) == ["b", "c"]
    assert schedule.stats().dropped == {"queue_bytes": 1}


def test_an_item_larger_than_the_queue_drives_nobody_out(make_schedule, letter):
    schedule = make_schedule(queue_bytes=1000)
    schedule.put([letter("a"), letter("huge", size=1001), letter("b")])

    assert texts(schedule.begin()) == ["a", "b"]
    assert schedule.stats().dropped == {"queue_bytes": 1}


def test_what_is_being_written_is_not_dropped(make_schedule, letters):
    schedule = make_schedule(queue_size=2)
    schedule.put(letters("ab"))
    batch = schedule.begin()
    schedule.put(letters("cd"))
    schedule.settle(batch, [Delivered()] * 2)

    assert schedule.stats().delivered == 2
    assert schedule.stats().dropped == {"queue_full": 2}


def test_in_a_hurry_everything_is_due_and_pauses_are_short(make_schedule, clock, letters):
    schedule = make_schedule(linger=5.0)
    schedule.put(letters("a"))
    clock.advance(5.0)
    for _ in range(8):
        schedule.settle(schedule.begin(), [NotThereYet()])
        clock.advance(schedule.wait())
    schedule.settle(schedule.begin(), [NotThereYet()])
    schedule.put(letters("b"))

    schedule.hurry()
    assert schedule.wait() == 0
    schedule.settle(schedule.begin(), [NotThereYet()] * 2)
    assert schedule.wait() == 0.5
    schedule.hurry_no_more()
    clock.advance(0.5)
    schedule.settle(schedule.begin(), [NotThereYet()] * 2)
    assert schedule.wait() > 0.5


def test_what_was_abandoned_is_counted_once_even_if_it_arrives_after_all(make_schedule, letters):
    schedule = make_schedule()
    schedule.put(letters("ab"))
    batch = schedule.begin()

    assert schedule.abandon("shutdown") == 2
    schedule.settle(batch, [Delivered()] * 2)

    assert schedule.stats().dropped == {"shutdown": 2}
    assert schedule.stats().delivered == 0


REPLIES = st.one_of(
    st.lists(st.sampled_from([Delivered(), NotThereYet(), Failed(), Refused("no")]), max_size=4),
    st.sampled_from([Unavailable("away"), BatchRefused("no"), RuntimeError(), None]),
)


@given(
    steps=st.lists(st.one_of(st.integers(1, 6), REPLIES, st.floats(0, 40), st.just("hurry")), max_size=40),
    queue_size=st.integers(1, 6),
    batch_size=st.integers(1, 4),
)
def test_every_item_ends_exactly_once_whatever_happens(steps, queue_size, batch_size):
    now = [0.0]
    options = DeliveryOptions(queue_size=queue_size, batch_size=batch_size, linger=0.0, retry_window=100.0)
    schedule = Schedule(options, counts=Counts(), backoff=Backoff(), clock=lambda: now[0])
    number = 0
    for step in steps:
        if isinstance(step, int):
            schedule.put([Numbered(number + place) for place in range(step)])
            number += step
        elif isinstance(step, float):
            now[0] += step
        elif step == "hurry":
            schedule.hurry()
            schedule.hurry_no_more()
        elif schedule.wait() == 0:
            schedule.settle(schedule.begin(), step)
        stats = schedule.stats()
        ended = stats.delivered + sum(stats.refused.values()) + sum(stats.dropped.values())
        assert stats.offered == number == stats.waiting + ended
        assert stats.waiting <= queue_size


class Numbered:
    size = 1

    def __init__(self, number):
        self.key = number % 3


def processor_time_of_a_round(make_schedule, clock, letter, waiting):
    """With so many items that were tried in vain, and one that comes."""
    schedule = make_schedule(queue_size=waiting + 100, queue_bytes=10**9, batch_size=100)
    schedule.put([letter(str(number), key=str(number)) for number in range(waiting)])
    while schedule.wait() == 0:
        batch = schedule.begin()
        schedule.settle(batch, [NotThereYet()] * len(batch))
    schedule.put([letter("new", key="new")])
    took = []
    for _ in range(20):
        began = time.thread_time()
        assert schedule.wait() == 0
        batch = schedule.begin()
        schedule.settle(batch, [NotThereYet()] * len(batch))
        assert schedule.wait() > 0
        took.append(time.thread_time() - began)
        schedule.put([letter("another", key="another" + str(len(took)))])
    return min(took)


def test_a_round_takes_no_longer_for_what_waits(make_schedule, clock, letter):
    few, many = (processor_time_of_a_round(make_schedule, clock, letter, waiting) for waiting in (100, 20_000))

    assert many < 20 * few  # it was 200 times as long
