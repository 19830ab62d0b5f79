from __future__ import annotations

import asyncio

import pytest

from ragspan.engine.helper.client import FairSemaphore


async def start(coroutine):
    """The task, once it waits for something or has ended."""
    task = asyncio.ensure_future(coroutine)
    for _ in range(3):
        await asyncio.sleep(0)
    return task


async def test_as_many_may_go_as_there_are_places():
    turns = FairSemaphore(2)
    await turns.take(1)
    await turns.take(1)
    third = await start(turns.take(1))
    assert not third.done()

    turns.give_back(1)
    await third


async def test_one_who_goes_alone_waits_for_the_others_and_then_they_wait():
    turns = FairSemaphore(2)
    await turns.take(1)
    alone = await start(turns.take(2))
    later = await start(turns.take(1))
    assert (alone.done(), later.done(), turns.is_one_alone) == (False, False, False)

    turns.give_back(1)
    await alone
    assert (later.done(), turns.is_one_alone) == (False, True)

    turns.give_back(2)
    await later
    assert not turns.is_one_alone


@pytest.mark.parametrize("places", [1, 2])
async def test_who_gives_up_waiting_leaves_the_line(places):
    turns = FairSemaphore(2)
    await turns.take(2)
    impatient, patient = await start(turns.take(places)), await start(turns.take(1))
    impatient.cancel()
    turns.give_back(2)

    await patient
    await turns.take(1)
    assert impatient.cancelled()


async def test_a_place_that_is_granted_to_one_who_has_just_given_up_goes_to_the_next():
    turns = FairSemaphore(1)
    await turns.take(1)
    impatient, patient = await start(turns.take(1)), await start(turns.take(1))
    turns.give_back(1)
    impatient.cancel()

    await asyncio.wait_for(patient, 20)
    assert patient.done()


async def test_those_behind_one_who_waited_to_go_alone_are_let_in_when_that_gives_up():
    turns = FairSemaphore(2)
    await turns.take(1)
    alone, behind = await start(turns.take(2)), await start(turns.take(1))
    alone.cancel()

    await asyncio.wait_for(behind, 20)
    assert behind.done()
