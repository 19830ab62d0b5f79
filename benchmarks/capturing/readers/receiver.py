"""ragspan-receiver: other instrumentors' spans, encoded as OTLP and decoded by the receiver, read by `ragspan_receiver.readers`."""

from __future__ import annotations

import importlib
import os
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

from capturing.grading import Seen
from capturing.readers.ragspan import seen_of
from capturing.traces import LocalSpans
from ragspan.records import RagRecord
from ragspan_receiver.readers import records_of
from ragspan_receiver.receiver import MAX_BODY
from ragspan_receiver.spans import RawSpan, batch_of, decoded

INSTRUMENTORS = {
    ("openinference", "langchain"): "openinference.instrumentation.langchain:LangChainInstrumentor",
    ("openinference", "llama-index"): "openinference.instrumentation.llama_index:LlamaIndexInstrumentor",
    ("traceloop", "langchain"): "opentelemetry.instrumentation.langchain:LangchainInstrumentor",
    ("traceloop", "llama-index"): "opentelemetry.instrumentation.llamaindex:LlamaIndexInstrumentor",
    ("opentelemetry", "langchain"): "opentelemetry.instrumentation.genai.langchain:LangChainInstrumentor",
}
_CONTENT = {
    "TRACELOOP_TRACE_CONTENT": "true",
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
}


class Receiver:
    callbacks: Sequence[Any] = ()

    def __init__(self, framework: str, instrumentor: str) -> None:
        os.environ |= _CONTENT
        self._spans = LocalSpans()
        module, _, name = INSTRUMENTORS[instrumentor, framework].partition(":")
        getattr(importlib.import_module(module), name)().instrument(tracer_provider=self._spans.provider)

    def begin(self) -> None:
        """It stays attached."""

    def seen(self) -> list[Seen]:
        return [seen_of(record) for record in self.records()]

    def records(self) -> list[RagRecord]:
        """The records of the spans that have ended since the last call."""
        traces: dict[bytes, list[RawSpan]] = defaultdict(list)
        spans = self._spans.exporter.take()
        if spans:
            for trace_id, raw in batch_of(encode_spans(spans).SerializeToString(), most=MAX_BODY).traces.items():
                traces[trace_id] += raw
        return [record for raw in traces.values() for record in records_of(list(decoded(raw)))]


def attach(framework: str, instrumentor: str) -> Receiver:
    return Receiver(framework, instrumentor)
