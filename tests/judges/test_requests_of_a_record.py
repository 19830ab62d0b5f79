"""What judging one record takes of an endpoint: how many requests, and how much of them its prompt cache can serve."""

from __future__ import annotations

import asyncio
import json
from itertools import takewhile

import pytest

from ragspan.judges.session import JudgingSession, judging
from ragspan.metrics import (
    AnswerRelevance,
    ChunkAttribution,
    ChunkUtilization,
    Completeness,
    ContextAdherence,
    ContextRelevance,
    ContextUtilization,
    Faithfulness,
    FaithfulnessWithHHEM,
)
from ragspan.records import RagRecord
from ragspan.testing import FakeJudge

CLAIMS = [f"Claim {number} states something that takes about a hundred characters to be stated." for number in range(8)]
THE_FOUR = [ContextAdherence, Completeness, ContextUtilization, Faithfulness]
ALL = [
    *(*THE_FOUR, AnswerRelevance, ContextRelevance, ChunkAttribution, ChunkUtilization),
    lambda judge: FaithfulnessWithHHEM(judge, FakeJudge()),
]


@pytest.fixture
def five_contexts():
    """An answer from five contexts of about 700 characters, as retrievers bring them."""

    def context(number):
        sentences = (f"Fact {number}.{place} says what there is to know of it in one sentence." for place in range(11))
        return " ".join(sentences)

    return RagRecord(
        question="What is there to know?",
        contexts=[context(number) for number in range(5)],
        response="There are many facts, of which these are some. " * 5,
    )


@pytest.fixture
def endpoint(fake_openai):
    """Answers all questions about a record with five contexts and the claims, any number of times."""

    def findings(count, **verdict):
        return [{"number": number, "reasoning": "r", **verdict} for number in range(1, count + 1)]

    answers = {
        "grounding": {"reasoning": "r", "verdict": "grounded"},
        "completeness": {"reasoning": "r", "value": 1},
        "answer_relevance": {"reasoning": "r", "value": 1},
        "context_verdicts": findings(5, verdict="useful"),
        "context_relevance": findings(5, verdict="full"),
        "used_sentences": findings(5, sentences=[1, 3]),
        "claims": CLAIMS,
        "claim_verdicts": findings(len(CLAIMS), verdict="supported"),
    }
    fake_openai.answers = answers

    def together(part):
        if part != "judged_claims":
            return answers[part]
        judged = zip(answers["claims"], answers["claim_verdicts"], strict=True)
        claims = [{"claim": claim, "reasoning": "r", "verdict": found["verdict"]} for claim, found in judged]
        return {"claims": claims, "more": False}

    def answer(request):
        if parts := fake_openai.parts(request):
            text = json.dumps({"answer": {part: together(part) for part in parts}})
            return fake_openai.says(*[text] * request.get("n", 1))
        question = fake_openai.question(request)
        text = json.dumps({"answer": {question: answers[question]}})
        return fake_openai.says(*[text] * request.get("n", 1))

    fake_openai.answer = answer
    return fake_openai


async def all_at_once(record, metrics):
    with judging(JudgingSession(record=record)):
        return await asyncio.gather(*(metric.score(record) for metric in metrics))


def prompts_of(endpoint):
    """The messages of each request as one text, which is what a provider's cache compares."""
    return [json.dumps(request["messages"]) for request in endpoint.requests]


def common_share(prompts):
    """The share of all characters in the beginnings that the prompts have in common."""
    common = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*prompts, strict=False)))
    return common * len(prompts) / sum(map(len, prompts))


async def test_all_metrics_that_ask_one_judge_take_one_request(endpoint, openai_judge, five_contexts):
    judge = openai_judge()

    scores = await all_at_once(five_contexts, [metric(judge) for metric in ALL])

    assert [score.label for score in scores] == ["pass"] * len(ALL)
    assert [request["n"] for request in endpoint.requests] == [3]


async def test_thorough_requests_are_few_and_begin_with_the_same_four_fifths(endpoint, openai_judge, five_contexts):
    """Characters stand for tokens: providers count about four of them as one, in all parts of a prompt alike."""
    judge = openai_judge(mode="thorough")

    scores = await all_at_once(five_contexts, [metric(judge) for metric in ALL])

    prompts = prompts_of(endpoint)
    assert [score.label for score in scores] == ["pass"] * len(ALL)
    assert len(prompts) == 7
    assert common_share(prompts) >= 0.8
    assert len({json.dumps(request["response_format"]) for request in endpoint.requests}) == 1
