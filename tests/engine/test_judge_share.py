"""A judge that is asked about a share of the answers, through the real client; the embedded judge reads all."""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter

import pytest
from measured import points_of
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from ragspan.engine import Budget
from ragspan.exceptions import ConfigurationError
from ragspan.judge_share import JudgeShare
from ragspan.judges import OpenAIJudge, OverlapJudge, Price
from ragspan.metrics import AnswerRelevance, Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.outcomes import NotApplicable, Score
from ragspan.records import RagRecord, SpanAnchor

FACTS = [
    "Beta settles card payments after midnight.",
    "Refunds leave the ledger within nine days.",
    "The archive keeps invoices for seven years.",
    "Couriers collect parcels from the yard each noon.",
    "Night guards lock the northern gate at eleven.",
]
OTHERS = [
    "Gamma ships telescopes by camel caravan.",
    "Violinists rehearse inside the submarine hangar.",
    "Penguins audit the cathedral choir yearly.",
    "Lava cools slowly beneath the opera balcony.",
    "Astronauts harvest saffron during monsoon season.",
]


def an_answer(wrong, number=0, **more):
    """An answer of five sentences, of which so many are nowhere in the contexts."""
    response = " ".join([*FACTS[: 5 - wrong], *OTHERS[:wrong]])
    return RagRecord(
        question="What happens?", contexts=FACTS, response=response, record_id=f"{number}-{wrong}", **more
    )


def some_answers(count, *, seed=1, chances=(60, 20, 10, 5, 3, 2)):
    draw = random.Random(seed)
    return [an_answer(wrong, number) for number, wrong in enumerate(draw.choices(range(6), chances, k=count))]


@pytest.fixture
def endpoint(fake_openai):
    """Finds what is nowhere in the contexts, and is content with all else."""

    def answer(request):
        task = fake_openai.question(request)
        text = request["messages"][-1]["content"]
        whole = "\n".join(str(message["content"]) for message in request["messages"])
        numbers = [int(one) for one in (re.findall(r"numbers?: ([\d, ]+)\.", text) or ["1"])[-1].split(",")]
        is_wrong = any(other in whole for other in OTHERS)
        replies = {
            "grounding": {"reasoning": "-", "verdict": "not_grounded" if is_wrong else "grounded"},
            "completeness": {"reasoning": "-", "value": 0.9},
            "answer_relevance": {"reasoning": "-", "value": 0.9},
            "claims": ["Beta settles card payments after midnight."],
            "claim_verdicts": [
                {"number": one, "reasoning": "-", "verdict": "unsupported" if is_wrong else "supported"} for one in numbers
            ],
            "context_verdicts": [{"number": one, "reasoning": "-", "verdict": "useful"} for one in range(1, 6)],
        }
        reply = fake_openai._text(task, replies[task])
        usage = {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1000}
        return fake_openai.says(*[reply] * request.get("n", 1), usage=usage)

    fake_openai.answer = answer
    return fake_openai


@pytest.fixture
def judge(endpoint):
    return OpenAIJudge("m", base_url=endpoint.base_url, api_key="-", price=Price(1.0, 1.0))


def four_metrics(judge):
    return [ContextAdherence(judge), Completeness(judge), ContextUtilization(judge), Faithfulness(judge)]


@pytest.fixture
def shared(fakes, make_engine):
    """Scores answers with an engine that has a share; gives what came of them, in order."""

    def run(answers, *metrics, judge_share=0.2, **options):
        engine = make_engine(*metrics, judging="thread", judge_share=judge_share, **options)

        async def score_all():
            return [await engine.score(answer) for answer in answers]

        return asyncio.run(score_all())

    return run


def test_try(shared, judge, endpoint):
    found = shared(some_answers(100), *four_metrics(judge))
    print(Counter(one.asked for one in found), len(endpoint.requests))
    for one in found[:40]:
        print(one.record.record_id, one.asked, {n: (o.value, o.judge, o.screen) if isinstance(o, Score) else o for n, o in one.outcomes.items()})
