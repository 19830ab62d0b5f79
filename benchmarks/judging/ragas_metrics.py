"""Ragas' metrics of today, those of `ragas.metrics.collections`, with its own client for OpenAI."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

os.environ["RAGAS_DO_NOT_TRACK"] = "true"  # is read on import

from openai import AsyncOpenAI
from ragas.llms import llm_factory
from ragas.metrics.collections import ContextUtilization, Faithfulness

from judging.job import KEY, MODEL, Answer
from judging.one_by_one import Judging

METRICS = {"Faithfulness": Faithfulness, "ContextUtilization": ContextUtilization}


def judging(base_url: str) -> Judging:
    model = llm_factory(MODEL, client=AsyncOpenAI(base_url=base_url, api_key=KEY))

    async def values_of(answer: Answer, names: Sequence[str]) -> dict[str, float]:
        asked = (
            METRICS[name](llm=model).ascore(
                user_input=answer.question, response=answer.response, retrieved_contexts=answer.passages
            )
            for name in names
        )
        results = await asyncio.gather(*asked)
        return dict(zip(names, (float(result.value) for result in results), strict=True))

    return values_of
