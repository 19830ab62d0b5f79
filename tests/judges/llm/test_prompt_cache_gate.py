from __future__ import annotations

import asyncio

import pytest

from ragspan.judges.llm.prompt_context import PromptCacheGate


class Requests:
    """Requests about a record: which have been sent, in order, and when each is answered is up to the test."""

    def __init__(self, gate):
        self.sent = []
        self._gate = gate
        self._answers = {}

    def start(self, name, *, is_urgent=False):
        self._answers[name] = asyncio.Event()
        return asyncio.ensure_future(self._send(name, is_urgent=is_urgent))

    async def _send(self, name, *, is_urgent):
        async with self._gate.turn(is_urgent=is_urgent):
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
    return Requests(PromptCacheGate(60))


async def test_the_first_request_about_a_record_goes_alone_and_the_others_when_it_is_answered(requests):
    tasks = [requests.start(name) for name in ("first", "second", "third")]
    await turns()
    assert requests.sent == ["first"]

    requests.answer("first")
    await turns()
    assert requests.sent == ["first", "second", "third"]

    requests.answer("second", "third")
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


async def test_nobody_waits_longer_than_the_limit_counted_from_when_the_first_went(monkeypatch):
    loop = asyncio.get_running_loop()
    requests = Requests(PromptCacheGate(60))
    first = requests.start("first")
    await turns()
    now = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now + 60.0)
    late = requests.start("late")
    requests.answer("late")
    await late
    assert requests.sent == ["first", "late"]

    requests.answer("first")
    await first


async def test_without_a_wait_all_go_at_once():
    requests = Requests(PromptCacheGate(0))
    tasks = [requests.start("first"), requests.start("second")]
    await turns()
    assert requests.sent == ["first", "second"]

    requests.answer("first", "second")
    await asyncio.gather(*tasks)
