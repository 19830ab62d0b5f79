"""A judge that cannot write one of its verdicts: what it can write says nothing."""

from __future__ import annotations

import json
import random

import pytest

from ragspan.judges import Completion, LLMJudge
from ragspan.metrics import ContextAdherence
from ragspan.outcomes import Score
from ragspan.records import RagRecord
from ragspan.usage import Usage

ANSWERS = 150


class Model:
    """Says yes in so many of its replies, and writes so many of the others in a way that nobody can read."""

    def __init__(self, seed, *, yes, unreadable):
        self._random, self._yes, self._unreadable = random.Random(seed), yes, unreadable

    def _reply(self):
        verdict = "grounded" if self._random.random() < self._yes else "not_grounded"
        if verdict == "not_grounded" and self._random.random() < self._unreadable:
            return "I do not think so."
        return json.dumps({"answer": {"grounding": {"reasoning": "r", "verdict": verdict}}})

    async def complete(self, messages, *, schema, n, temperature):
        return [Completion(text=self._reply(), usage=Usage(requests=1)) for _ in range(n)]


async def share_that_passes(**odds):
    metric = ContextAdherence(LLMJudge(Model(7, **odds), name="m"))
    records = (RagRecord(question="q", contexts=["a"], response=f"It is {at}.") for at in range(ANSWERS))
    outcomes = [await metric.score(record) for record in records]
    return sum(isinstance(one, Score) and one.label == "pass" for one in outcomes) / ANSWERS


@pytest.mark.parametrize(
    ("yes", "unreadable", "most"),
    [(1 / 3, 1.0, 0.0), (0.5, 1.0, 0.0), (1 / 3, 0.5, 0.28)],
)
async def test_what_cannot_be_read_is_not_missing_at_random(yes, unreadable, most):
    assert await share_that_passes(yes=yes, unreadable=unreadable) <= most


async def test_of_a_judge_that_can_be_read_as_many_pass_as_its_votes_say():
    assert 0.15 < await share_that_passes(yes=1 / 3, unreadable=0.0) < 0.4
