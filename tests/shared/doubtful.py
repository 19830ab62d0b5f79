"""Answers of which so many sentences are nowhere in their contexts, and a model that finds out which."""

from __future__ import annotations

import json
import random
import re

import pytest

from ragspan.judges import OpenAIJudge, Price
from ragspan.records import RagRecord

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
    return RagRecord(question="What happens?", contexts=FACTS, response=response, record_id=f"{number}-{wrong}", **more)


def some_answers(count, *, seed=1, chances=(60, 20, 10, 5, 3, 2)):
    draw = random.Random(seed)
    return [an_answer(wrong, number) for number, wrong in enumerate(draw.choices(range(6), chances, k=count))]


def finds_what_is_nowhere(fake_openai):
    """How the endpoint answers: it finds what is nowhere in the contexts, and is content with all else."""

    def answer(request):
        parts = fake_openai.parts(request) or [fake_openai.question(request)]
        whole = "\n".join(str(message["content"]) for message in request["messages"])
        numbers = [int(one) for one in (re.findall(r"numbers?: ([\d, ]+)\.", whole) or ["1"])[-1].split(",")]
        is_wrong = any(other in whole for other in OTHERS)
        replies = {
            "grounding": {"reasoning": "-", "verdict": "not_grounded" if is_wrong else "grounded"},
            "completeness": {"reasoning": "-", "value": 0.9},
            "answer_relevance": {"reasoning": "-", "value": 0.9},
            "claims": ["Beta settles card payments after midnight."],
            "claim_verdicts": [
                {"number": one, "reasoning": "-", "verdict": "unsupported" if is_wrong else "supported"}
                for one in numbers
            ],
            "context_verdicts": [{"number": one, "reasoning": "-", "verdict": "useful"} for one in range(1, 6)],
            "judged_claims": {
                "claims": [
                    {"claim": FACTS[0], "reasoning": "-", "verdict": "unsupported" if is_wrong else "supported"}
                ],
                "more": False,
            },
        }
        reply = json.dumps({"answer": {part: replies[part] for part in parts}})
        usage = {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1000}
        return fake_openai.says(*[reply] * request.get("n", 1), usage=usage)

    return answer


@pytest.fixture
def endpoint(fake_openai):
    """An endpoint that finds what is nowhere in the contexts."""
    fake_openai.answer = finds_what_is_nowhere(fake_openai)
    return fake_openai


@pytest.fixture
def asked_judge(endpoint):
    """A judge that asks that endpoint, at a price."""
    return OpenAIJudge("m", base_url=endpoint.base_url, api_key="-", price=Price(1.0, 1.0))
