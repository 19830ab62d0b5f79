"""Many requests at the same time, in threads, in tasks, streamed and not: none is mixed up with another."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from captures import Answered, InAnyOrder
from li_programs import PASSAGES, drained, seen, topic_engine

COUNT = 200
TOPICS = list(PASSAGES)
QUESTIONS = [f"Number {number}: what of the {TOPICS[number % 5]}?" for number in range(COUNT)]


def echo(prompt):
    """Repeats the question, so that an answer to another one is easy to see."""
    return answer_to(re.findall(r"Number \d+: what of the \w+\?", prompt)[-1])


def answer_to(question):
    return f"Echo of {question}"


@pytest.fixture
def expected(model):
    model.says(echo)
    return InAnyOrder(
        Answered(question, [seen(question.split()[-1][:-1])], answer_to(question)) for question in QUESTIONS
    )


def threads(function):
    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(function, QUESTIONS))


async def test_all_of_these_at_once(captured, expected):
    plain, streaming = topic_engine(), topic_engine(streaming=True, response_mode="tree_summarize")

    async def read(question):
        return await drained((await streaming.aquery(question)).response_gen)

    def read_in_thread(question):
        return "".join(streaming.query(question).response_gen)

    ways = [
        plain.aquery,
        read,
        lambda question: asyncio.to_thread(plain.query, question),
        lambda question: asyncio.to_thread(read_in_thread, question),
    ]
    await asyncio.gather(*(ways[number % 4](question) for number, question in enumerate(QUESTIONS)))

    assert captured.answers() == expected
