"""What a worker has in hand."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from worker_parts import a_delivery, a_record

from ragspan_nats.worker.delivery import ACKNOWLEDGE
from ragspan_nats.worker.in_hand import InHand

LONG = 20.0
SHORT = 0.01


def holding(*deliveries):
    in_hand = InHand()
    for delivery in deliveries:
        in_hand.add(delivery)
    return in_hand


def test_a_delivery_is_found_by_its_message_and_by_its_record():
    one, other = a_delivery(sequence=1), a_delivery(sequence=2)
    in_hand = holding(one, other)

    assert in_hand.all() == [one, other]
    assert in_hand.of_message(a_delivery(sequence=2, number=3).arrival) is other
    assert in_hand.of_message(a_delivery(sequence=3).arrival) is None
    assert in_hand.of(one.record) is one


def test_a_message_of_a_stream_that_was_made_anew_is_another_one():
    in_hand = holding(a_delivery(sequence=1, stored_at=1.0))

    assert in_hand.of_message(a_delivery(sequence=1, stored_at=2.0).arrival) is None


def test_records_that_are_alike_are_told_apart():
    one, other = a_delivery(a_record("same"), sequence=1), a_delivery(a_record("same"), sequence=2)
    in_hand = holding(one, other)

    assert one.record == other.record
    assert in_hand.of(other.record) is other
    assert in_hand.of(replace(one.record)) is None


def test_what_was_removed_is_found_no_more():
    one, other = a_delivery(sequence=1), a_delivery(sequence=2)
    in_hand = holding(one, other)

    in_hand.remove(one)
    in_hand.remove(one)  # a second time does no harm

    assert in_hand.all() == [other]
    assert (in_hand.of_message(one.arrival), in_hand.of(one.record)) == (None, None)


def test_what_was_withdrawn_is_in_hand_but_emitted_no_more():
    delivery = a_delivery()
    in_hand = holding(delivery)

    in_hand.withdraw(delivery)

    assert in_hand.of(delivery.record) is None
    assert in_hand.of_message(delivery.arrival) is delivery
    assert len(in_hand) == 1


def test_the_next_delivery_of_a_message_outlives_the_one_that_was_given_back():
    given_back, again = a_delivery(sequence=1), a_delivery(sequence=1, number=2)
    in_hand = holding(given_back, again)

    in_hand.remove(given_back)

    assert in_hand.all() == [again]
    assert in_hand.of_message(given_back.arrival) is again


def test_it_counts_what_is_in_hand_and_what_is_being_scored():
    one, other = a_delivery(), a_delivery()
    in_hand = holding(one, other)
    other.verdict = ACKNOWLEDGE
    in_hand.settling = 3

    assert (len(in_hand), in_hand.being_scored()) == (5, 1)


async def test_waiting_ends_when_something_was_removed():
    delivery = a_delivery()
    in_hand = holding(delivery)
    waiting = asyncio.create_task(in_hand.changed(LONG))
    await asyncio.sleep(0)
    assert not waiting.done()

    in_hand.remove(delivery)

    await asyncio.wait_for(waiting, LONG / 2)


async def test_waiting_ends_with_its_time():
    await asyncio.wait_for(holding().changed(SHORT), LONG)


async def test_a_change_before_the_wait_is_not_missed_and_counts_once():
    in_hand = holding()
    in_hand.tell()

    await asyncio.wait_for(in_hand.changed(LONG), LONG / 2)

    again = asyncio.create_task(in_hand.changed(LONG))
    await asyncio.wait([again], timeout=SHORT)
    assert not again.done()
    again.cancel()


async def test_all_who_wait_are_woken():
    in_hand = holding()
    waiting = [asyncio.create_task(in_hand.changed(LONG)) for _ in range(3)]
    await asyncio.sleep(0)

    in_hand.tell()

    await asyncio.wait_for(asyncio.gather(*waiting), LONG / 2)
