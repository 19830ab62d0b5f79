from __future__ import annotations

import pytest

from ragspan.judges.base import ClaimVerdict, ContextRating, ContextVerdict, Rating, Vote
from ragspan.records import RagRecord


class FixedJudge:
    """Gives the verdicts that it was made with, and notes what it is asked."""

    name = "fixed"

    def __init__(self, *, votes=(), ratings=(), claims=(), supported=(), useful=(), rated=()):
        self.votes = [vote if isinstance(vote, Vote) else Vote(grounded=vote) for vote in votes]
        self.ratings = [rating if isinstance(rating, Rating) else Rating(value=rating) for rating in ratings]
        self.claims = list(claims)
        self.supported = [
            verdict if isinstance(verdict, ClaimVerdict) else ClaimVerdict(index=index, supported=verdict)
            for index, verdict in enumerate(supported)
        ]
        self.useful = [
            verdict if isinstance(verdict, ContextVerdict) else ContextVerdict(index=index, useful=bool(verdict))
            for index, verdict in enumerate(useful)
        ]
        self.rated = [
            rating if isinstance(rating, ContextRating) else ContextRating(index=index, value=rating)
            for index, rating in enumerate(rated)
        ]
        self.asked = []

    async def vote_adherence(self, record, votes):
        self.asked.append(("votes", votes))
        return self.votes

    async def rate_completeness(self, record, ratings):
        self.asked.append(("ratings", ratings))
        return self.ratings

    async def extract_claims(self, record):
        self.asked.append(("claims",))
        return self.claims

    async def verify_claims(self, record, claims):
        self.asked.append(("verdicts", list(claims)))
        return self.supported

    async def judge_usefulness(self, record):
        self.asked.append(("usefulness",))
        return self.useful

    async def rate_answer_relevance(self, record, ratings):
        self.asked.append(("relevance", ratings))
        return self.ratings

    async def rate_context_relevance(self, record):
        self.asked.append(("context relevance",))
        return self.rated

    async def measure_utilization(self, record):
        self.asked.append(("utilization",))
        return self.rated


@pytest.fixture
def fixed_judge():
    return FixedJudge


@pytest.fixture
def answered():
    """Makes an answered record that every metric applies to, with changes."""

    def make(**changes):
        values = {"question": "Who won?", "contexts": ["Green Bay won.", "It was in 1967."], "response": "Green Bay."}
        return RagRecord(**(values | changes))

    return make
