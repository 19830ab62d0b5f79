from __future__ import annotations

import asyncio

import pytest

from ragspan.exceptions import BudgetExhausted, JudgeError
from ragspan.judges.llm.prompt_context import AskedOnce
from ragspan.judges.session import metered, report_usage
from ragspan.outcomes import Usage


class Question:
    """A question that is answered when a test says so; it counts how often it was asked."""

    def __init__(self):
        self.times = 0
        self.cancelled = 0
        self._going = []

    async def __call__(self):
        self.times += 1
        answer = asyncio.get_running_loop().create_future()
        self._going.append(answer)
        report_usage(Usage(requests=1))
        try:
            return await answer
        except asyncio.CancelledError:
            self.cancelled += 1
            self._going.remove(answer)
            raise

    def answer(self, text):
        for answer in self._going:
            answer.set_result(text)
        self._going.clear()

    def fail(self, error):
        for answer in self._going:
            answer.set_exception(error)
        self._going.clear()


async def turns(count=10):
    """Let every task run until it waits."""
    for _ in range(count):
        await asyncio.sleep(0)


def start(once, question):
    return asyncio.ensure_future(once.ask("claims", question))


@pytest.fixture
def once():
    return AskedOnce()


@pytest.fixture
def question():
    return Question()


async def test_those_who_ask_at_the_same_time_share_one_answer(once, question):
    waiting = [start(once, question) for _ in range(3)]
    await turns()
    question.answer("yes")

    assert await asyncio.gather(*waiting) == ["yes"] * 3
    assert question.times == 1


async def test_who_asks_later_gets_the_answer_that_is_there(once, question):
    first = start(once, question)
    await turns()
    question.answer("yes")
    await first

    assert await once.ask("claims", question) == "yes"
    assert question.times == 1


async def test_the_first_is_charged_and_only_once(once, question):
    async def ask():
        with metered() as meter:
            await once.ask("claims", question)
        return meter.total.requests

    waiting = [asyncio.ensure_future(ask()) for _ in range(3)]
    await turns()
    question.answer("yes")

    assert await asyncio.gather(*waiting) == [1, 0, 0]


@pytest.mark.parametrize("error", [JudgeError("RateLimitError", "Slow down."), BudgetExhausted("requests_per_minute")])
async def test_an_error_is_that_of_the_caller_who_asked_and_the_next_asks_again(once, question, error):
    first, second, third = (start(once, question) for _ in range(3))
    await turns()
    question.fail(error)
    await turns()
    question.answer("yes")

    with pytest.raises(type(error)):
        await first
    assert await asyncio.gather(second, third) == ["yes"] * 2
    assert question.times == 2


async def test_a_caller_who_is_cancelled_leaves_the_question_to_the_next(once, question):
    first, second = start(once, question), start(once, question)
    await turns()
    first.cancel()
    await turns()
    question.answer("yes")

    assert await second == "yes"
    assert (question.times, question.cancelled) == (2, 1)
