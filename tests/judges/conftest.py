from __future__ import annotations

import pytest

from ragspan.judges import OpenAIJudge
from ragspan.records import RagRecord

KEY = "sk-test-0123456789"


@pytest.fixture
def openai_judge(fake_openai):
    """Makes a judge that asks the fake endpoint and does not retry."""

    def make(**options):
        return OpenAIJudge(
            "test-model", **({"base_url": fake_openai.base_url, "api_key": KEY, "max_retries": 0} | options)
        )

    return make


@pytest.fixture
def super_bowl():
    """An answer with one claim that the passages support and one that they contradict."""
    return RagRecord(
        question="When was the first Super Bowl played, and who won it?",
        contexts=[
            "The first Super Bowl was played on January 15, 1967, in Los Angeles.",
            "Its stadium, the Coliseum, was a third empty that day.",
            "The Green Bay Packers beat the Kansas City Chiefs by 35 to 10.",
        ],
        response="The first Super Bowl was played on January 15, 1967. The Chicago Bears won it.",
    )
