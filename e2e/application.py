"""An application as users write it: traced, with the handlers attached, and its scores sent to a tool."""

from __future__ import annotations

from pathlib import Path

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import NoOpTracer

from ragspan import ScoringEngine
from ragspan.judges import OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.telemetry import OTelEmitter
from ragspan.telemetry.emitter_protocols import ScoreEmitter
from ragspan.testing import RecordingEmitter
from ragspan_langchain import RagspanCallbackHandler as LangChainHandler
from ragspan_llama_index import RagspanCallbackHandler as LlamaIndexHandler
from traffic import SCRIPT, ask_langchain, ask_llama_index

DOCUMENTATION = (Path(__file__).parents[1] / "docs" / "tracing-tools.md").read_text(encoding="utf-8")
"""What the tests type stands there, too."""
FLUSH_SECONDS = 60.0
METRICS = ("context_adherence", "completeness", "context_utilization", "faithfulness")


class _Handle(ScoreEmitter):
    """Takes outcomes at a span that is there."""

    def __init__(self, emit, span) -> None:
        self.emit, self.span = emit, span


def engine_for(*emitters) -> ScoringEngine:
    """An engine with all four metrics and the embedded judge."""
    judge = OverlapJudge()
    return ScoringEngine(
        metrics=[ContextAdherence(judge), Completeness(judge), ContextUtilization(judge), Faithfulness(judge)],
        emitters=emitters,
        judging="thread",
    )


class KnownSpans(RecordingEmitter):
    """Finds the spans that answers had when they were scored before, by record."""

    def __init__(self, spans) -> None:
        super().__init__()
        self._spans = spans

    def start(self, record):
        return _Handle(self.emit, self._spans[record.record_id])


class Application:
    """Answers the script's questions with both frameworks.

    Args:
        exporter: takes the spans.
        writer: writes the scores as the tool's own; None leaves it at attributes.
        resource: attributes that the tool wants on spans.
    """

    def __init__(self, exporter, *, writer=None, resource=None) -> None:
        self.provider = TracerProvider(
            resource=Resource.create({"service.name": "library"} | (resource or {})), shutdown_on_exit=False
        )
        self.provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=100))
        self.writer = writer
        self.seen = RecordingEmitter()
        self.engine = engine_for(
            OTelEmitter(tracer_provider=self.provider, capture_content=True),
            *([] if writer is None else [writer]),
            self.seen,
        )

    def ask_everything(self, *, in_requests: bool = True) -> None:
        """Ask each framework each question of the script, each in a span of its own as in a web server, or in none."""
        tracer = self.provider.get_tracer("library") if in_requests else NoOpTracer()
        langchain, llama_index = LangChainHandler(sink=self.engine), LlamaIndexHandler(sink=self.engine)
        try:
            for asked in SCRIPT:
                with tracer.start_as_current_span(f"GET /ask/langchain {asked.name}"):
                    ask_langchain(asked, langchain)
                with tracer.start_as_current_span(f"GET /ask/llama-index {asked.name}"):
                    ask_llama_index(asked)
        finally:
            llama_index.detach()

    def scored(self):
        """What has been scored so far, once everything is."""
        assert self.engine.flush(FLUSH_SECONDS)
        return list(self.seen.scored)

    def close(self, timeout: float = FLUSH_SECONDS) -> None:
        """End as an application does."""
        self.engine.shutdown(timeout)
        self.provider.shutdown()
