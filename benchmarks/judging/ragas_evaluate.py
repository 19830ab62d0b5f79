"""Ragas' `evaluate` with its metric of one request a row, `AspectCritic`.

It takes a table that is there as a whole, and so has no queue. Its own faithfulness metric makes two requests a row.
"""

from __future__ import annotations

import math
import os

os.environ["RAGAS_DO_NOT_TRACK"] = "true"  # is read on import

from langchain_openai import ChatOpenAI
from openai import DefaultAsyncHttpxClient
from pydantic import SecretStr
from ragas import EvaluationDataset, RunConfig, evaluate
from ragas.llms import LangchainLLMWrapper
from ragas.metrics import AspectCritic

from judging.job import KEY, MODEL, Answer, Endpoint


class RagasEvaluate:
    """As many workers as the concurrency."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._metric = AspectCritic(name="grounded", definition="Does the response follow from the contexts?")
        self._run_config = RunConfig(max_workers=endpoint.concurrency)

    def judge(self, answers: list[Answer]) -> int:
        rows = [
            {"user_input": answer.question, "retrieved_contexts": answer.passages, "response": answer.response}
            for answer in answers
        ]
        # Connections of their own for each call: each runs in a loop of its own, and cannot use those of the last one.
        model = ChatOpenAI(
            model=MODEL,
            base_url=self._endpoint.base_url,
            api_key=SecretStr(KEY),
            http_async_client=DefaultAsyncHttpxClient(),
        )
        result = evaluate(
            EvaluationDataset.from_list(rows),
            metrics=[self._metric],
            llm=LangchainLLMWrapper(model),
            run_config=self._run_config,
            show_progress=False,
        )
        return sum(not math.isnan(score["grounded"]) for score in result.scores)

    def close(self) -> None:
        pass
