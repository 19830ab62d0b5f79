"""ragspan's engine with `OpenAIJudge`, through the real `openai` client."""

from __future__ import annotations

from collections.abc import Sequence

from judging.job import KEY, MODEL, Answer, Endpoint
from ragspan import RagRecord, ScoringEngine
from ragspan.judges import OpenAIJudge
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.metrics.metric import Metric
from ragspan.outcomes import Score, ScoredRecord
from ragspan.telemetry.emitter_protocols import ScoreEmitter

_PATIENCE = 300.0


class CountingEmitter(ScoreEmitter):
    """Counts the records all of whose metrics have a score."""

    score_wait = _PATIENCE

    def __init__(self) -> None:
        self.scored = 0

    def emit(self, scored: ScoredRecord) -> None:
        self.scored += all(isinstance(outcome, Score) for outcome in scored.outcomes.values())


class Engine:
    """Submits everything at once and waits until it is out."""

    def __init__(self, endpoint: Endpoint, metrics: Sequence[Metric]) -> None:
        self._emitter = CountingEmitter()
        self._engine = ScoringEngine(
            metrics=metrics,
            emitters=[self._emitter],
            concurrency=endpoint.concurrency,
            queue_size=1_000_000,
            queue_bytes=1_000_000_000,
        )

    def judge(self, answers: list[Answer]) -> int:
        before = self._emitter.scored
        for answer in answers:
            self._engine.submit(RagRecord(question=answer.question, contexts=answer.passages, response=answer.response))
        self._engine.flush(_PATIENCE)
        return self._emitter.scored - before

    def close(self) -> None:
        self._engine.shutdown(1.0)


def one_metric(endpoint: Endpoint) -> Engine:
    """One request a record, with three choices."""
    return Engine(endpoint, [ContextAdherence(judge_at(endpoint), polls=3)])


def four_metrics(endpoint: Endpoint) -> Engine:
    """One request a record, with three choices."""
    judge = judge_at(endpoint)
    metrics: list[Metric] = [
        ContextAdherence(judge, polls=3),
        Completeness(judge, polls=3),
        ContextUtilization(judge),
        Faithfulness(judge),
    ]
    return Engine(endpoint, metrics)


def judge_at(endpoint: Endpoint) -> OpenAIJudge:
    return OpenAIJudge(MODEL, base_url=endpoint.base_url, api_key=KEY)
