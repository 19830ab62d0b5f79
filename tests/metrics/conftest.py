from __future__ import annotations

import pytest

from ragspan.judges.judge_protocols import ClaimVerdict, ContextRating, Rating, Vote
from ragspan.records import RagRecord


class FixedJudge:
    """Gives the verdicts that it was made with, and notes what it is asked."""

    name = "fixed"

    def __init__(self, *, votes=(), ratings=(), claims=(), supported=(), useful=(), rated=()):
        self.votes = made(Vote, votes, lambda at, vote: Vote(grounded=vote, explanation=f"why {at}"))
        self.ratings = made(Rating, ratings, lambda at, value: Rating(value=value, explanation=f"why {at}"))
        self.claims = list(claims)
        self.supported = made(
            ClaimVerdict,
            supported,
            lambda index, one: ClaimVerdict(index=index, verdict="supported" if one else "unsupported"),
        )
        self.useful = made(ContextRating, useful, lambda index, one: ContextRating(index=index, value=float(one)))
        self.rated = made(ContextRating, rated, lambda index, value: ContextRating(index=index, value=value))
        self.asked = []

    async def vote_adherence(self, record, votes):
        self.asked.append(("votes", votes))
        return self.votes

    async def rate_completeness(self, record, ratings):
        self.asked.append(("ratings", ratings))
        return self.ratings

    async def rate_answer_relevance(self, record, ratings):
        self.asked.append(("relevance", ratings))
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

    async def rate_context_relevance(self, record):
        self.asked.append(("rated",))
        return self.rated

    measure_utilization = rate_context_relevance


def made(kind, given, of_value):
    """Verdicts as they are, and others from their values."""
    return [one if isinstance(one, kind) else of_value(index, one) for index, one in enumerate(given)]


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
