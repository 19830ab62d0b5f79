"""The public names as users type them: checked by the type checker, never run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel
from llama_index.core.llms import LLM

import ragspan
from ragspan import Budget, Dropped, MetricFailure, NotApplicable, RagRecord, Score, ScoredRecord, ScoringEngine
from ragspan.judges import (
    AnswerRelevanceJudge,
    ChatClient,
    ClaimVerdict,
    ContextRating,
    ContextRelevanceJudge,
    Judge,
    Jury,
    LLMJudge,
    OpenAIJudge,
    OverlapJudge,
    Price,
    Rating,
    UtilizationJudge,
    Verifier,
    Vote,
    named_judge,
)
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
    Metric,
)
from ragspan.outcomes import Outcome
from ragspan.records import SpanAnchor
from ragspan.telemetry import Emitter, OTelEmitter
from ragspan.telemetry.emitter_protocols import ScoreEmitter
from ragspan.testing import RecordingEmitter
from ragspan.tools.datadog import DatadogEmitter
from ragspan.tools.langfuse import LangfuseEmitter
from ragspan.tools.langsmith import LangSmithEmitter
from ragspan.tools.phoenix import PhoenixEmitter
from ragspan_langchain import LangChainChatClient
from ragspan_llama_index import LlamaIndexChatClient


def build_an_engine() -> ScoringEngine:
    judge: Judge = OpenAIJudge("gpt-4o-mini", base_url="http://localhost:8000/v1", price=Price(0.15, 0.60))
    metrics: list[Metric] = [ContextAdherence(judge, polls=5), ContextUtilization(judge), Faithfulness(judge)]
    emitters: list[Emitter] = [
        OTelEmitter(score_wait=5.0, spans="scores", capture_content=True),
        PhoenixEmitter(base_url="http://127.0.0.1:6006", api_key="key"),
        LangfuseEmitter(public_key="key", secret_key="key", level="trace"),
        LangSmithEmitter(api_key="key", project="support"),
        DatadogEmitter(api_key="key", ml_app="support"),
    ]
    budget = Budget(tokens_per_minute=60_000, fallback="overlap")
    return ScoringEngine(metrics=metrics, emitters=emitters, sample_rate=0.5, budget=budget)


def judge_with_several_models() -> ScoringEngine:
    jury: Judge = Jury(
        [named_judge("openai:gpt-4o-mini", timeout=20), OpenAIJudge("claude-haiku-4-5", provider="anthropic")]
    )
    configured = ragspan.configure(judge=["openai:gpt-4o-mini", OverlapJudge()], metrics=["faithfulness"])
    configured.shutdown()
    hhem = FaithfulnessWithHHEM(OverlapJudge())
    return ScoringEngine(metrics=[ContextAdherence(jury), Completeness(jury), hhem], emitters=[])


def judge_with_models_of_frameworks(model: BaseChatModel, llm: LLM) -> list[Judge]:
    clients: list[ChatClient] = [LangChainChatClient(model), LlamaIndexChatClient(llm)]
    return [LLMJudge(client, name="mine") for client in clients]


async def await_a_record(engine: ScoringEngine, record: RagRecord) -> float | None:
    scored = await engine.score(record, sample=False)
    if isinstance(scored, Dropped):
        assert scored.reason != "nothing_to_score"
        return None
    outcome = scored.outcomes["faithfulness"]
    return outcome.value if isinstance(outcome, Score) else None


def read_an_outcome(outcome: Outcome) -> float | str:
    if isinstance(outcome, Score):
        return outcome.value
    if isinstance(outcome, NotApplicable):
        return outcome.reason
    failure: MetricFailure = outcome
    return failure.error_type


@dataclass(frozen=True)
class AsyncMetric:
    name: str = "a"

    async def score(self, record: RagRecord) -> Outcome:
        return Score(value=1.0 if record.response else 0.0)


@dataclass(frozen=True)
class SyncMetric:
    name: str = "b"

    def score(self, record: RagRecord) -> Outcome:
        return NotApplicable(reason="no_response") if record.response is None else Score(value=1.0)


class OwnVerifier:
    name = "own"

    async def verify_claims(self, record: RagRecord, claims: Sequence[str]) -> list[ClaimVerdict]:
        return [
            ClaimVerdict(index=index, verdict="supported" if bool(record.contexts) else "unsupported")
            for index, _ in enumerate(claims)
        ]


class OwnJudge(OwnVerifier):
    async def vote_adherence(self, record: RagRecord, votes: int) -> list[Vote]:
        return [Vote(grounded=bool(record.contexts))] * votes

    async def rate_completeness(self, record: RagRecord, ratings: int) -> list[Rating]:
        return [Rating(value=1.0 if record.contexts else 0.0)] * ratings

    async def extract_claims(self, record: RagRecord) -> list[str]:
        return [record.response or ""]

    async def judge_usefulness(self, record: RagRecord) -> list[ContextRating]:
        return [ContextRating(index=index, value=1) for index, _ in enumerate(record.contexts or ())]


class OwnRetrievalJudge:
    name = "own"

    async def rate_context_relevance(self, record: RagRecord) -> list[ContextRating]:
        return [ContextRating(index=index, value=0.5) for index, _ in enumerate(record.contexts or ())]

    measure_utilization = rate_context_relevance


def ask_more() -> list[Metric]:
    relevance: AnswerRelevanceJudge = OpenAIJudge("gpt-4o-mini")
    contexts: list[ContextRelevanceJudge] = [OwnRetrievalJudge(), OverlapJudge()]
    used: list[UtilizationJudge] = [OwnRetrievalJudge(), OverlapJudge()]
    return [
        AnswerRelevance(relevance, polls=1),
        ChunkAttribution(OverlapJudge(), threshold=0.5),
        *map(ContextRelevance, contexts),
        *map(ChunkUtilization, used),
    ]


class OwnHandle:
    span: SpanAnchor | None = None

    def finish(self, scored: ScoredRecord) -> None:
        print(scored.record.record_id)

    def late(self, scored: ScoredRecord) -> None:
        print(scored.late)

    def abandon(self) -> None:
        print("abandoned")


class OwnScoreEmitter(ScoreEmitter):
    def emit(self, scored: ScoredRecord) -> None:
        print(scored.record.record_id, scored.late)


class OwnEmitter:
    score_wait = 0.0

    def start(self, record: RagRecord) -> OwnHandle:
        print(record.record_id)
        return OwnHandle()

    def flush(self, timeout: float) -> bool:
        return timeout >= 0

    def shutdown(self, timeout: float) -> None:
        print(timeout)


def bring_your_own() -> ScoringEngine:
    judge: Judge = OwnJudge()
    verifier: Verifier = OwnVerifier()
    return ScoringEngine(
        metrics=[
            AsyncMetric(),
            SyncMetric(),
            Faithfulness(judge),
            FaithfulnessWithHHEM(judge, verifier),
            Completeness(OverlapJudge()),
            ContextAdherence(OverlapJudge()),
        ],
        emitters=[OwnEmitter(), OwnScoreEmitter(), RecordingEmitter()],
    )
