from __future__ import annotations

import asyncio

import pytest

from ragspan.judges.llm.asking import AskedOnce


class Question:
    """Has a future for each time that it was asked."""

    def __init__(self):
        self.answers = []

    async def __call__(self):
        self.answers.append(asyncio.get_running_loop().create_future())
        return await self.answers[-1]


async def turns(count=10):
    """Let every task run until it waits."""
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.fixture
def question():
    return Question()


@pytest.fixture
def once():
    return AskedOnce()


@pytest.fixture
async def callers(question, once):
    """Three who ask at the same time."""
    tasks = [asyncio.ensure_future(once.ask("claims", question)) for _ in range(3)]
    await turns()
    return tasks


async def test_a_caller_who_is_cancelled_leaves_the_question_to_the_next(callers, question):
    callers[0].cancel()
    await turns()
    question.answers[1].set_result("yes")

    assert await asyncio.gather(*callers[1:]) == ["yes"] * 2
    assert question.answers[0].cancelled()
