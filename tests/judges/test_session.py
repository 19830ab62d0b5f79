from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from ragspan.judges.session import JudgingSession, UsageMeter, judging, session_of
from ragspan.records import RagRecord


@pytest.fixture
def record():
    return RagRecord(question="Why?", contexts=["Because."], response="Because.")


async def test_what_is_kept_for_a_record_is_made_once_for_all_of_its_metrics(record):
    session = JudgingSession(record=record)
    made = []

    async def ask():
        return session_of(record).get_or_make("prompt", lambda: made.append(1) or object())

    tasks = []
    for _ in range(3):
        with judging(replace(session, meter=UsageMeter())):
            tasks.append(asyncio.ensure_future(ask()))

    assert len({id(kept) for kept in await asyncio.gather(*tasks)}) == 1
    assert made == [1]


def test_a_program_without_an_engine_has_a_session_for_the_record_that_it_asks_about(record):
    session_of(record).get_or_make("prompt", lambda: "kept")

    assert session_of(record).get_or_make("prompt", lambda: "made again") == "kept"
