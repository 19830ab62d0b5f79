"""Makes the record of a request from what was noted while it ran; runs in the worker."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from ragspan.matching import PromptText
from ragspan.records import AnswerStatus, RagRecord, plain_entries
from ragspan_langchain.answers import question_in
from ragspan_langchain.contexts import contexts_of
from ragspan_langchain.endings import status_and_response
from ragspan_langchain.lineage import reached_model
from ragspan_langchain.payloads.freezing import OPAQUE, Frozen, FrozenCall, FrozenMessage
from ragspan_langchain.runs import Kind, Trace
from ragspan_langchain.steps import Steps, is_agent

_SESSION_KEYS = ("session_id", "thread_id", "conversation_id", "langfuse_session_id")
_USER_KEYS = ("user_id", "langfuse_user_id")


class TraceCapture:
    """A finished request; becomes a record in the worker."""

    __slots__ = ("_trace", "size_hint")

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.size_hint = _bytes_of(trace)

    def to_record(self) -> RagRecord | None:
        trace = self._trace
        if not trace.grouped and not trace.recorded and _is_no_answer(trace):
            return None
        status, response = status_and_response(trace)
        if _says_nothing(trace, status, response) or _shows_documents(trace, response):
            return None
        question = _question(trace)
        steps = Steps(trace)
        return RagRecord(
            question=question,
            contexts=contexts_of(trace, question, response),
            response=response,
            status=status,
            error_type=trace.error if status == "error" else None,
            framework="langchain",
            name=trace.name,
            started_ns=trace.started_ns,
            ended_ns=trace.ended_ns,
            parent=trace.anchor,
            retrievals=steps.retrievals(),
            generations=steps.generations(),
            session_id=_first(trace.metadata, _SESSION_KEYS),
            user_id=_first(trace.metadata, _USER_KEYS),
            tags=trace.tags,
            metadata=_own_metadata(trace.metadata),
            tool_calls=steps.tool_calls(),
            rerankings=steps.rerankings(),
            is_agent=is_agent(trace.metadata, steps),
            error=trace.noted.report() if status == "error" and trace.noted is not None else None,
        )


def _is_no_answer(trace: Trace) -> bool:
    """A bare search, prompt, parser or call of a model or tool is no answer to score; a tool that asks a model is one."""
    kind = trace.root.kind if trace.root is not None else Kind.CHAIN
    return trace.is_part or kind in {Kind.RETRIEVER, Kind.MODEL} or (kind is Kind.TOOL and not trace.models)


def _says_nothing(trace: Trace, status: AnswerStatus, response: str | None) -> bool:
    """Nothing was asked of a model or a search, and no text came out: a prompt that was filled in, say."""
    return status == "complete" and response is None and not (trace.models or trace.searches or trace.recorded)


def _shows_documents(trace: Trace, response: str | None) -> bool:
    """No model was asked, and what came out is what a search found: a search with a formatter."""
    if response is None or reached_model(trace) or trace.grouped or trace.recorded:
        return False
    return any(PromptText(response).find([entry.text for entry in trace.documents.values()], excerpts=False))


def _question(trace: Trace) -> str | None:
    found = [question_in(trace.inputs, trace.queries), question_in(trace.asked_before, trace.queries)]
    saved = [question_in(state, named_only=True) for state in trace.saved_states]
    found += [question for question in saved if question not in trace.queries]  # what a model asked its tools
    found += saved
    found += [question_in(state, trace.queries) for state in trace.saved_states]
    found += [run.query for run in trace.searches[:1]]
    return next((question for question in found if question is not None), None)


# Parts of the record


def _first(metadata: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    found = (metadata.get(key) for key in keys)
    return next((str(value) for value in found if isinstance(value, (str, int)) and value != ""), None)


def _own_metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the program put there, not what the frameworks add for their own tracing."""
    own = plain_entries(metadata)
    return {key: value for key, value in own.items() if not key.startswith(("ls_", "langgraph_", "checkpoint", "__"))}


_TOKEN_BYTES = 60
"""Of a short text; a token of content blocks is some of them."""


def _bytes_of(trace: Trace) -> int:
    """Bytes of the texts that a request refers to, each once; a text's size is known without reading it."""
    texts = [entry.text for entry in trace.documents.values()]
    texts += [context.text for context in trace.recorded]
    tokens = 0
    for run in (*trace.models_before, *trace.models):
        tokens += len(run.tokens)
        texts += [part[1] for part in run.prompt.parts]
        texts += run.prompt.texts
        if run.reply is not None:
            texts.append(run.reply.text)
    tools = [payload for run in trace.tools for payload in (run.arguments, run.result)]
    for frozen in (trace.inputs, trace.output, trace.asked_before, *trace.saved_states, *tools):
        if type(frozen) is str:
            texts.append(frozen)
        elif frozen is not OPAQUE:
            _add_texts(texts, [frozen])
    return tokens * _TOKEN_BYTES + sum(map(sys.getsizeof, dict(zip(map(id, texts), texts, strict=True)).values()))


def _add_texts(texts: list[str], frozen: list[Frozen]) -> None:
    """Add those that lie in frozen payloads."""
    while frozen:
        value = frozen.pop()
        if type(value) is str:
            texts.append(value)
        elif isinstance(value, list):
            frozen += value
        elif isinstance(value, dict):
            frozen += value.values()
        elif isinstance(value, FrozenMessage):
            texts.append(value.text)
            frozen += value.calls
        elif isinstance(value, FrozenCall):
            frozen.append(value.arguments)
