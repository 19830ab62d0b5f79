"""OpenInference's instrumentors, read as Phoenix reads their spans.

`phoenix.client.helpers.spans.rag.get_input_output_context` takes `input.value` and `output.value` of each root span,
and joins the contents of `retrieval.documents` of all spans of kind RETRIEVER of its trace; here they stay apart. It
leaves out traces without such spans, which counts here as having no contexts. It looks at no status; a root span whose
status is an error is nevertheless taken to be known as unfinished.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan

from capturing.grading import Seen
from capturing.traces import LocalSpans, Trace

_CONTENT = re.compile(r"retrieval\.documents\.(\d+)\.document\.content")


class OpenInference:
    callbacks: Sequence[Any] = ()

    def __init__(self, framework: str) -> None:
        self._spans = LocalSpans()
        if framework == "langchain":
            from openinference.instrumentation.langchain import LangChainInstrumentor

            LangChainInstrumentor().instrument(tracer_provider=self._spans.provider)
        else:
            from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

            LlamaIndexInstrumentor().instrument(tracer_provider=self._spans.provider)

    def begin(self) -> None:
        """It stays attached."""

    def seen(self) -> list[Seen]:
        return [_seen(root, trace) for trace in self._spans.take() for root in trace.roots]


def _seen(root: ReadableSpan, trace: Trace) -> Seen:
    attributes = root.attributes or {}
    retrievers = [span for span in trace.spans if (span.attributes or {}).get("openinference.span.kind") == "RETRIEVER"]
    return Seen(
        question=attributes.get("input.value"),
        contexts=tuple(text for span in retrievers for text in _documents(span.attributes or {})),
        response=attributes.get("output.value"),
        is_unfinished=not root.status.is_ok,
    )


def _documents(attributes: Mapping[str, Any]) -> list[str]:
    found = ((_CONTENT.fullmatch(name), value) for name, value in attributes.items())
    return [value for _, value in sorted((int(match[1]), value) for match, value in found if match)]


def attach(framework: str) -> OpenInference:
    return OpenInference(framework)
