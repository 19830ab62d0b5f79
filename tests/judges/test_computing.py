from __future__ import annotations

import asyncio

import pytest

from ragspan.judges.computing import computed, computing_at, has_own_thread, only_waits
from ragspan.records import RagRecord


class Judge:
    """Says where it was asked, and what."""

    @computed
    async def judge(self, record: RagRecord, votes: int, *, strict: bool = False) -> list[object]:
        """One verdict."""
        return ["here", record, votes, strict]


class Place:
    """Keeps what it is asked."""

    def __init__(self, answer: object = "there") -> None:
        self.asked: list[object] = []
        self._answer = answer

    async def compute(self, judge, question, record, args, kwargs):
        self.asked.append((judge, question, record, args, dict(kwargs)))
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer


@pytest.fixture
def record() -> RagRecord:
    return RagRecord(question="Why?", contexts=["Because."], response="Because.")


async def test_without_a_place_a_judge_computes_where_it_is_called(record):
    assert await Judge().judge(record, 3, strict=True) == ["here", record, 3, True]


async def test_at_a_place_it_is_asked_there(record):
    judge, place = Judge(), Place()
    with computing_at(place):
        assert await judge.judge(record, 3, strict=True) == "there"

    assert place.asked == [(judge, "judge", record, (3,), {"strict": True})]
    assert (await judge.judge(record, 3))[0] == "here"


async def test_what_is_raised_there_is_raised_here(record):
    with computing_at(Place(LookupError("there"))), pytest.raises(LookupError, match="there"):
        await Judge().judge(record, 3)


async def test_tasks_that_are_started_inside_ask_there_afterwards_too(record):
    place = Place()
    with computing_at(place):
        task = asyncio.ensure_future(Judge().judge(record, 3))

    assert await task == "there"


async def test_the_place_itself_asks_the_judge_without_one(record):
    with computing_at(Place()):
        with computing_at(None):
            assert (await Judge().judge(record, 3))[0] == "here"
        assert await Judge().judge(record, 3) == "there"


def test_a_marked_method_keeps_its_name_and_its_documentation():
    assert (Judge.judge.__name__, Judge.judge.__doc__) == ("judge", "One verdict.")


def test_a_place_can_see_which_methods_only_wait():
    class WaitingJudge:
        @computed
        @has_own_thread
        async def judge(self, record: RagRecord) -> list[object]:
            return []

    assert only_waits(WaitingJudge().judge)
    assert not only_waits(Judge().judge)
