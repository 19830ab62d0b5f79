"""ragspan with its engine: all four metrics with the embedded judge, computed in the helper process, and spans over OTLP."""

from __future__ import annotations

import os

from peers.attachment import Attachment
from ragspan import ScoringEngine
from ragspan.judges import OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.metrics.metric import Metric
from ragspan.telemetry import OTelEmitter

_PATIENCE = 60.0


def langchain(sink: str) -> Attachment:
    """The helper process scores, and the application builds and exports the spans."""
    return attached("langchain", sink)


def llama_index(sink: str) -> Attachment:
    return attached("llama-index", sink)


def attached(framework: str, sink: str) -> Attachment:
    engine = scoring_engine(sink)

    def settle() -> None:
        if not engine.flush(_PATIENCE):
            raise RuntimeError(f"not everything was scored and sent: {engine.stats()}")

    if framework == "langchain":
        from ragspan_langchain import RagspanCallbackHandler as LangChainHandler

        return Attachment(handlers=[LangChainHandler(sink=engine)], settle=settle)
    from peers.dispatcher import attached_by
    from ragspan_llama_index import RagspanCallbackHandler as LlamaIndexHandler

    return attached_by(lambda: LlamaIndexHandler(sink=engine), settle=settle)


def scoring_engine(sink: str) -> ScoringEngine:
    from opentelemetry import trace

    from ragspan.telemetry.environment import providers_from_environment

    os.environ |= {
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_ENDPOINT": sink,
    }
    provider = providers_from_environment().tracer_provider
    if provider is not None:
        trace.set_tracer_provider(provider)
    judge = OverlapJudge()
    metrics: list[Metric] = [
        ContextAdherence(judge),
        Completeness(judge),
        ContextUtilization(judge),
        Faithfulness(judge),
    ]
    return ScoringEngine(metrics=metrics, emitters=[OTelEmitter()], judging="helper")
