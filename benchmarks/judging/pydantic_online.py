"""pydantic-evals' online evaluation with its `LLMJudge`.

It has no queue: what comes while as many evaluations run as may is dropped. So that it can do the job at all, the next
answer is given only when an evaluation has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_evals.evaluators import LLMJudge
from pydantic_evals.online import OnlineEvaluator, evaluate, wait_for_evaluations

from judging.job import KEY, MODEL, Answer, Endpoint


class PydanticOnline:
    """Evaluates the answers of a decorated function."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._loop = asyncio.new_event_loop()
        self._may_start = asyncio.Semaphore(endpoint.concurrency)
        self._judged = 0
        model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=endpoint.base_url, api_key=KEY))
        online = OnlineEvaluator(
            evaluator=LLMJudge("The output follows from the passages.", model=model, include_input=True),
            max_concurrency=2 * endpoint.concurrency,  # one that has ended is still counted for a moment
            sink=self._take,
        )
        self._answer = evaluate(online)(answer)

    def judge(self, answers: list[Answer]) -> int:
        before = self._judged
        self._loop.run_until_complete(self._evaluate(answers))
        return self._judged - before

    def close(self) -> None:
        self._loop.close()

    async def _evaluate(self, answers: list[Answer]) -> None:
        for one in answers:
            await self._may_start.acquire()
            await self._answer("\n\n".join([*one.passages, one.question]), one.response)
        await wait_for_evaluations()

    def _take(self, results: Sequence[Any], failures: Sequence[Any], context: object) -> None:
        self._judged += bool(results)
        self._may_start.release()


async def answer(_: str, response: str) -> str:
    """The application."""
    return response
