"""Splunk's evaluation manager, in its concurrent mode, with an evaluator that makes one request through `openai`.

Splunk's own evaluators are those of another library, which make several requests each. The manager takes at most 16
workers, each of which has one answer in work.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from openai import AsyncOpenAI
from opentelemetry.util.genai.evals.base import Evaluator
from opentelemetry.util.genai.evals.manager import Manager
from opentelemetry.util.genai.evals.registry import register_evaluator
from opentelemetry.util.genai.types import EvaluationResult, InputMessage, LLMInvocation, OutputMessage, Text

from judging.job import KEY, MODEL, Answer, Endpoint

_MOST_WORKERS = 16
_METRIC = "hallucination"
_INTERVAL = 0.1


class SplunkManager:
    """Offers all answers at once; the queue is as long as it has to be."""

    def __init__(self, endpoint: Endpoint) -> None:
        register_evaluator(
            "one-request", lambda **_: OneRequest(endpoint), default_metrics=lambda: {"LLMInvocation": [_METRIC]}
        )
        self._handler = CountingHandler()
        self._manager = Manager(
            self._handler,
            interval=_INTERVAL,
            queue_size=1_000_000,
            concurrent_mode=True,
            worker_count=min(endpoint.concurrency, _MOST_WORKERS),
        )

    def judge(self, answers: list[Answer]) -> int:
        before = self._handler.judged
        for answer in answers:
            self._manager.offer(invocation(answer))
        self._manager.wait_for_all()
        return self._handler.judged - before

    def close(self) -> None:
        self._manager.shutdown()


class OneRequest(Evaluator):  # type: ignore[misc]  # its type is known where Splunk is installed
    """Asks once, with a client for each worker: each has a loop of its own."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__([_METRIC])
        self._endpoint = endpoint
        self._worker = threading.local()

    async def evaluate_llm_async(self, invocation: LLMInvocation) -> Sequence[EvaluationResult]:
        if not hasattr(self._worker, "client"):
            self._worker.client = AsyncOpenAI(base_url=self._endpoint.base_url, api_key=KEY)
        parts = [part for message in invocation.input_messages for part in message.parts]
        parts += [part for message in invocation.output_messages for part in message.parts]
        completion = await self._worker.client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "\n\n".join(part.content for part in parts)}]
        )
        return [EvaluationResult(metric_name=_METRIC, score=1.0, explanation=completion.choices[0].message.content)]


class CountingHandler:
    """Takes results in place of Splunk's emitters."""

    def __init__(self) -> None:
        self.judged = 0
        self._lock = threading.Lock()

    def evaluation_results(self, invocation: object, results: Sequence[Any]) -> None:
        with self._lock:
            self.judged += bool(results)


def invocation(answer: Answer) -> LLMInvocation:
    return LLMInvocation(
        request_model=MODEL,
        input_messages=[InputMessage(role="user", parts=[Text("\n\n".join([*answer.passages, answer.question]))])],
        output_messages=[OutputMessage(role="assistant", parts=[Text(answer.response)], finish_reason="stop")],
    )
