from __future__ import annotations

import asyncio
import pickle

import pytest

from ragspan.judges.llm.cache_warming import CacheWarming


class Requests:
    """Requests about cases: which have been sent, in order, and when each is answered is up to the test."""

    def __init__(self, warming):
        self.sent = []
        self._warming = warming
        self._answers = {}

    def start(self, name, case="case", *, is_urgent=False):
        self._answers[name] = asyncio.Event()
        return asyncio.ensure_future(self._send(name, case, is_urgent=is_urgent))

    async def _send(self, name, case, *, is_urgent):
        async with self._warming.turn(case, is_urgent=is_urgent):
            self.sent.append(name)
            await self._answers[name].wait()

    def answer(self, *names):
        for name in names:
            self._answers[name].set()


async def turns(count=20):
    """Let every task run until it waits."""
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.fixture
def requests():
    return Requests(CacheWarming(60))


async def test_the_first_request_about_a_case_goes_alone_and_the_others_when_it_is_answered(requests):
    tasks = [requests.start(name) for name in ("first", "second", "third")]
    await turns()
    assert requests.sent == ["first"]

    requests.answer("first")
    await turns()
    assert requests.sent == ["first", "second", "third"]

    requests.answer("second", "third")
    await asyncio.gather(*tasks)


async def test_requests_about_other_cases_do_not_wait(requests):
    tasks = [requests.start("first", "case"), requests.start("another", "another case")]
    await turns()
    assert requests.sent == ["first", "another"]

    requests.answer("first", "another")
    await asyncio.gather(*tasks)


async def test_among_those_that_come_together_the_one_that_another_depends_on_goes_first(requests):
    tasks = [requests.start("votes"), requests.start("ratings"), requests.start("claims", is_urgent=True)]
    await turns()
    assert requests.sent == ["claims"]

    requests.answer("claims", "votes", "ratings")
    await asyncio.gather(*tasks)


async def test_a_first_request_that_is_taken_back_lets_the_others_go(requests):
    first, second = requests.start("first"), requests.start("second")
    await turns()
    first.cancel()
    await turns()
    assert requests.sent == ["first", "second"]

    requests.answer("second")
    await second
    assert first.cancelled()


async def test_one_that_is_taken_back_while_it_waits_holds_up_nobody(requests):
    tasks = [requests.start(name) for name in ("first", "second", "third")]
    await turns()
    tasks[1].cancel()
    requests.answer("first", "third")
    await asyncio.gather(tasks[0], tasks[2])
    assert requests.sent == ["first", "third"]


async def test_nobody_waits_longer_than_the_limit_counted_from_when_the_first_went():
    now = 0.0
    requests = Requests(CacheWarming(60, clock=lambda: now))
    first = requests.start("first")
    await turns()
    now = 60.0
    late = requests.start("late")
    requests.answer("late")
    await late
    assert requests.sent == ["first", "late"]

    requests.answer("first")
    await first


async def test_without_a_wait_all_go_at_once():
    requests = Requests(CacheWarming(0))
    tasks = [requests.start("first"), requests.start("second")]
    await turns()
    assert requests.sent == ["first", "second"]

    requests.answer("first", "second")
    await asyncio.gather(*tasks)


def test_a_first_request_whose_loop_has_ended_costs_no_more_than_the_limit():
    now = 0.0
    warming = CacheWarming(60, clock=lambda: now)

    async def leave_behind():
        turn = warming.turn("case", is_urgent=True)
        await turn.__aenter__()
        return turn  # the block is never left

    left = asyncio.run(leave_behind())

    async def come_later():
        async with warming.turn("case", is_urgent=True):
            return True

    now = 60.0
    assert asyncio.run(come_later())
    assert left is not None


async def test_the_oldest_cases_are_forgotten():
    warming = CacheWarming(60)
    for number in range(1000):
        async with warming.turn(str(number), is_urgent=True):
            pass
    assert len(warming) <= 128


def test_a_copy_for_another_process_starts_afresh():
    warming = CacheWarming(60)

    async def go():
        async with warming.turn("case", is_urgent=True):
            pass

    asyncio.run(go())
    assert len(warming) == 1
    assert len(pickle.loads(pickle.dumps(warming))) == 0
