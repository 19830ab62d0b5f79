"""What judging one record takes of an endpoint: how many requests, and how much of them its prompt cache can serve."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from itertools import takewhile

import pytest

from ragspan import Budget, ScoringEngine
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
from ragspan.records import RagRecord, Retrieval, RetrievedContext
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
        "statement_sources": findings(1, verdict="document", document=1),
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


@pytest.mark.parametrize(("metrics", "requests"), [(THE_FOUR, 5), (ALL, 8)])
async def test_thorough_requests_are_few_and_begin_with_the_same_four_fifths(
    endpoint, openai_judge, five_contexts, metrics, requests
):
    """Characters stand for tokens: providers count about four of them as one, in all parts of a prompt alike."""
    judge = openai_judge(mode="thorough")

    scores = await all_at_once(five_contexts, [metric(judge) for metric in metrics])

    prompts = prompts_of(endpoint)
    assert [score.label for score in scores] == ["pass"] * len(metrics)
    assert len(prompts) == requests
    assert common_share(prompts) >= 0.8
    assert len({json.dumps(request["response_format"]) for request in endpoint.requests}) == 1


@pytest.fixture
def failing(endpoint, five_contexts):
    """A record whose search had found one document more, with an endpoint that finds its claims unsupported."""
    endpoint.answers["grounding"] = {"reasoning": "r", "verdict": "not_grounded"}
    endpoint.answers["claim_verdicts"] = [
        {"number": number, "reasoning": "r", "verdict": "unsupported"} for number in range(1, len(CLAIMS) + 1)
    ]
    found = (*five_contexts.contexts, RetrievedContext(text="What was dropped says it."))
    search = Retrieval(name="search", query="", started_ns=0, ended_ns=1, contexts=found)
    return replace(five_contexts, retrievals=(search,))


async def test_a_metric_that_fails_takes_one_request_more_that_begins_with_the_same(endpoint, openai_judge, failing):
    judge = openai_judge(mode="thorough")

    scores = await all_at_once(
        failing, [ContextAdherence(judge, llm_causes=True), Faithfulness(judge, llm_causes=True)]
    )

    prompts = prompts_of(endpoint)
    assert [score.cause for score in scores] == ["lost_before_prompt"] * 2
    assert len(prompts) == 5
    assert common_share(prompts) >= 0.75
    assert sum("What was dropped says it." in prompt for prompt in prompts) == 2


async def test_where_the_budget_is_spent_a_failing_answer_has_its_score_and_no_cause(endpoint, openai_judge, failing):
    metrics = [ContextAdherence(openai_judge(), polls=1, llm_causes=True)]
    with ScoringEngine(metrics=metrics, emitters=[], budget=Budget(requests_per_minute=1)) as engine:
        scored = await engine.score(failing)

    score = scored.outcomes["context_adherence"]
    assert (score.label, score.causes, score.fallback) == ("fail", (), None)
    assert len(endpoint.requests) == 1
