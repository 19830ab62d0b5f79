"""DeepEval's handlers.

Its evaluation of a trace makes an `LLMTestCase` of `str(trace.input)`, `str(trace.output)` and
`trace.retrieval_context` (`deepeval.evaluate.execute.agentic`), that of a span the same of the span. Its handlers set
none of the three on the trace. Where the trace has nothing, its root span's is taken here; where that has no contexts,
the `retrieval_context` of the spans below it, and the output of spans of retrievers, whose documents are there as
text. A trace or a root span in state ERRORED is taken to be known as unfinished. What it would post is kept instead.
"""

from __future__ import annotations

import ast
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from capturing.grading import Seen

if TYPE_CHECKING:
    from deepeval.tracing.types import BaseSpan, Trace

_DOCUMENT = re.compile(r"page_content=(?P<text>'.*'|\".*\")(?: metadata=\{.*\})?", re.DOTALL)


class DeepEval:
    callbacks: Sequence[Any] = ()

    def __init__(self, framework: str) -> None:
        os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "1", "ERROR_REPORTING": "0", "CONFIDENT_TRACE_VERBOSE": "0"}
        from deepeval.tracing import trace_manager

        self._ended: deque[Trace] = deque()
        trace_manager.post_trace = self._ended.append
        self._framework = framework

    def begin(self) -> None:
        """What earlier cases left open stands in the way of later ones: both handlers keep it."""
        if self._framework == "langchain":
            from deepeval.integrations.langchain import CallbackHandler

            self.callbacks = [CallbackHandler()]
        else:
            _instrument_anew()

    def seen(self) -> list[Seen]:
        return [_seen(self._ended.popleft()) for _ in range(len(self._ended))]


def _instrument_anew() -> None:
    from deepeval.integrations.llama_index.handler import LLamaIndexHandler, instrument_llama_index
    from llama_index_instrumentation import get_dispatcher

    root = get_dispatcher()
    root.event_handlers = [handler for handler in root.event_handlers if not isinstance(handler, LLamaIndexHandler)]
    root.span_handlers = [handler for handler in root.span_handlers if not isinstance(handler, LLamaIndexHandler)]
    instrument_llama_index(root)


def _seen(trace: Trace) -> Seen:
    root = trace.root_spans[0] if trace.root_spans else None
    contexts = trace.retrieval_context or (root and root.retrieval_context)
    return Seen(
        question=_text(trace.input or (root and root.input)),
        contexts=tuple(contexts or _retrieved(trace.root_spans)),
        response=_text(trace.output or (root and root.output)),
        is_unfinished=any(holder is not None and holder.status.value == "ERRORED" for holder in (trace, root)),
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _retrieved(spans: Iterable[BaseSpan]) -> Iterator[str]:
    for span in spans:
        if span.retrieval_context:
            yield from span.retrieval_context
        elif type(span).__name__ == "RetrieverSpan" and isinstance(span.output, list):
            yield from map(_document, span.output)
        else:
            yield from _retrieved(span.children)


def _document(written: str) -> str:
    """The text of a LangChain document that is there as `str(document)`."""
    found = _DOCUMENT.fullmatch(written)
    return ast.literal_eval(found["text"]) if found else written


def attach(framework: str) -> DeepEval:
    return DeepEval(framework)
