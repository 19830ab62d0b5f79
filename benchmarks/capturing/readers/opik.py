"""Opik's handlers, read from the traces that `opik.record_traces_locally` keeps.

A rule of its online evaluation maps its variables to paths in the input and the output of a trace or of a span. Here
the question is the trace's input, the response its output. The LangChain tracer makes no span of a retriever
(`OpikTracer` has no method for retrievers), so that the contexts are the documents that stand in the input or the
output of any span of the trace, each once; no path names those, but somebody may pick them. With LlamaIndex they are
the nodes in the output of the outermost `retrieve` spans. A trace with `error_info` is taken to be known as unfinished.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from capturing.grading import Seen

if TYPE_CHECKING:
    from opik.message_processing.emulation.models import SpanModel, TraceModel


class Opik:
    callbacks: Sequence[Any] = ()

    def __init__(self, framework: str) -> None:
        os.environ |= {
            "OPIK_URL_OVERRIDE": "http://127.0.0.1:9/api",
            "OPIK_SENTRY_ENABLE": "false",
            "OPIK_ANALYTICS_ENABLE": "false",
            "OPIK_DEFAULT_FLUSH_TIMEOUT": "2",
        }
        import opik

        self._framework = framework
        self._recording = ExitStack()
        self._traces = self._recording.enter_context(opik.record_traces_locally())
        self._taken: set[str] = set()
        if framework == "langchain":
            from opik.integrations.langchain import OpikTracer

            self.callbacks = [OpikTracer()]

    def begin(self) -> None:
        """LlamaIndex's callback manager is another in each case."""
        if self._framework == "llama-index":
            from llama_index.core import Settings
            from llama_index.core.callbacks import CallbackManager
            from opik.integrations.llama_index import LlamaIndexCallbackHandler

            Settings.callback_manager = CallbackManager([LlamaIndexCallbackHandler()])

    def seen(self) -> list[Seen]:
        traces = [trace for trace in self._traces.trace_trees if trace.end_time and trace.id not in self._taken]
        self._taken.update(trace.id for trace in traces)
        return [_seen(trace) for trace in traces]


def _seen(trace: TraceModel) -> Seen:
    retrieved = _nodes(trace.spans) if "llama_index" in str(trace.metadata) else _documents(trace.spans)
    return Seen(
        question=trace.input,
        contexts=tuple(dict.fromkeys(retrieved)),
        response=trace.output,
        is_unfinished=trace.error_info is not None,
    )


def _nodes(spans: Iterable[SpanModel]) -> Iterator[str]:
    for span in spans:
        if span.name == "retrieve":
            found = (span.output or {}).get("output", {})
            yield from (node["node"].get("text", "") for node in found.get("nodes", ()) if "node" in node)
        else:
            yield from _nodes(span.spans)


def _documents(spans: Iterable[SpanModel]) -> Iterator[str]:
    for span in spans:
        yield from _texts_of_documents(span.input)
        yield from _documents(span.spans)
        yield from _texts_of_documents(span.output)


def _texts_of_documents(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(value.get("page_content"), str):
            yield value["page_content"]
        value = list(value.values())
    for item in value if isinstance(value, (list, tuple)) else ():
        yield from _texts_of_documents(item)


def attach(framework: str) -> Opik:
    return Opik(framework)
