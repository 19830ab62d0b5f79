"""Langfuse's LangChain handler.

An evaluator maps its variables to the input or the output of a trace or of an observation. Here the question is the
root observation's input, the response its output, and the contexts are the documents in the output of all observations
of type `retriever`, where an evaluator's variable takes one. A root observation of level ERROR is taken to be known as
unfinished. Its exporter is replaced by one that keeps the spans.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan

from capturing.grading import Seen
from capturing.traces import LocalSpans, Trace


class Langfuse:
    def __init__(self) -> None:
        import langfuse
        from langfuse.langchain import CallbackHandler

        self._spans = LocalSpans(processor=False)
        self._client = langfuse.Langfuse(
            public_key="pk-lf-local",
            secret_key="sk-lf-local",
            base_url="http://127.0.0.1:9",
            tracer_provider=self._spans.provider,
            span_exporter=self._spans.exporter,
            flush_at=1,
        )
        self.callbacks = [CallbackHandler(public_key="pk-lf-local")]

    def begin(self) -> None:
        """Its handler comes with the call."""

    def seen(self) -> list[Seen]:
        self._spans.provider.force_flush()
        return [_seen(root, trace) for trace in self._spans.take() for root in trace.roots]


def _seen(root: ReadableSpan, trace: Trace) -> Seen:
    attributes = root.attributes or {}
    retrievers = [
        span for span in trace.spans if (span.attributes or {}).get("langfuse.observation.type") == "retriever"
    ]
    outputs = [(span.attributes or {}).get("langfuse.observation.output") for span in retrievers]
    return Seen(
        question=attributes.get("langfuse.observation.input"),
        contexts=tuple(text for output in outputs for text in _documents(output)),
        response=attributes.get("langfuse.observation.output"),
        is_unfinished=attributes.get("langfuse.observation.level") == "ERROR",
    )


def _documents(output: Any) -> Iterator[str]:
    documents = json.loads(output) if isinstance(output, str) else []
    for document in documents if isinstance(documents, list) else []:
        yield (
            str(document["page_content"])
            if isinstance(document, dict) and "page_content" in document
            else str(document)
        )


def attach(framework: str) -> Langfuse:  # noqa: ARG001 - it has one handler only
    return Langfuse()
