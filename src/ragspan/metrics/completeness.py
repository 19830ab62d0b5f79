"""Completeness: how much of what the contexts say about the question is in the response? By independent ratings."""

from __future__ import annotations

from dataclasses import dataclass

from ragspan.judges.base import Judge, Rating
from ragspan.metrics._polling import RatedMetric
from ragspan.records import RagRecord


@dataclass(frozen=True, slots=True)
class Completeness(RatedMetric[Judge]):
    """The mean of a judge's ratings of how completely the response covers what the contexts hold, 0..1.

    It says nothing about truth: a response may cover everything and invent the rest. Ratings outside 0..1 are not
    valid, and with half of the ratings or fewer valid there is no score. The explanation is that of the rating closest
    to the mean, the first of equals; `details["spread"]` is the standard deviation of the ratings, and a large one says
    that the judge is not sure.

    Source: the polling of ChainPoll (arXiv 2310.18344), with ratings in place of votes.
    """

    name = "completeness"
    questions = ("rate_completeness",)

    async def ask(self, record: RagRecord, count: int) -> list[Rating]:
        return await self.judge.rate_completeness(record, count)
