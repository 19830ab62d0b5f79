"""Turns the log of a request into its trace; a pure function, which runs in the worker."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ragspan.capturing.log import Event, RequestLog, RunKey
from ragspan.capturing.snapshots import LONG_TEXT, OPAQUE, Hidden, Opaque, Snapshot
from ragspan.records import SpanAnchor
from ragspan_langchain.payloads import (
    MESSAGE,
    Found,
    Message,
    documents_in,
    scored_document,
    texts_of_documents,
)
from ragspan_langchain.trace import ModelRun, Prompt, PromptPart, Reply, RetrieverRun, Run, SeenDocument, ToolRun, Trace

MAX_SAVED_STATES = 5
NO_INPUT_YET = {"input": ""}
"""What a stream is said to begin with; its real input comes with its end."""

_AnyRun = TypeVar("_AnyRun", bound=Run)


def trace_of(log: RequestLog) -> Trace:
    """The trace of a request, with what was found before it was interrupted."""
    before = None
    for earlier in log.earlier:
        before = _Folding(earlier, before).trace
    return _Folding(log, before).trace


class _Folding:
    def __init__(self, log: RequestLog, before: Trace | None) -> None:
        self.trace = Trace(log, before)
        self._runs: dict[RunKey, Run] = {}
        self._open_searches: dict[RunKey, Run] = {}  # the runs around them
        self._copies: dict[RunKey, int] = {}  # how many times the handler stands in the run's list of handlers
        for event in log.history:
            _FOLD[event.kind](self, event)
        for key, stream in log.streams.items():
            run = self._runs.get(key)
            if isinstance(run, ModelRun):
                run.tokens = stream.tokens[:: self._copies.get(key, 1)]
                run.first_token_ns, run.last_chunk = stream.first_ns, stream.last_chunk
        if log.abandoned:
            self.trace.error = "GeneratorExit"  # as for a stream that its reader left

    # Starts

    def _start(self, make: type[_AnyRun], event: Event) -> _AnyRun:
        trace = self.trace
        parent = None if event.parent is None else self._runs.get(event.parent)
        run = make(
            name=event.about if isinstance(event.about, str) else event.about["name"],
            parent=parent,
            started_ns=event.time_ns,
            inputs=event.payload,
        )
        if not trace.name:
            trace.name = run.name
        if event.run == trace.log.root and trace.root is None:
            trace.root = run
        self._runs[event.run] = run
        trace.runs.append(run)
        return run

    def fold_chain(self, event: Event) -> None:
        run, trace, inputs = self._start(Run, event), self.trace, event.payload
        if run.parent is None:
            self._note_inputs(inputs)
        elif isinstance(trace.inputs, Opaque) and len(trace.saved_states) < MAX_SAVED_STATES:
            trace.saved_states.append(inputs)  # called with a command, not a question: steps have the state
        if isinstance(inputs, Opaque) and inputs.identity in trace.unreadable:
            run.consumed = inputs.identity
        self._see_all(inputs, run)

    def fold_tool(self, event: Event) -> None:
        run = self._start(ToolRun, event)
        run.call_id = event.about["call_id"]
        if run.parent is None:
            self._note_inputs(run.inputs)
        self.trace.tools.append(run)
        texts = run.inputs.values() if isinstance(run.inputs, dict) else [run.inputs]
        self.trace.queries += [text for text in texts if isinstance(text, str)]

    def fold_retriever(self, event: Event) -> None:
        run = self._start(RetrieverRun, event)
        run.metadata, run.span = event.about["metadata"], event.about["span"]
        if run.query is not None:
            self.trace.queries.append(run.query)
        if run.parent is None:
            self._note_inputs(run.inputs)
        else:
            self._open_searches[event.run] = run.parent
        self.trace.searches.append(run)

    def fold_model(self, event: Event) -> None:
        run, trace, about = self._start(ModelRun, event), self.trace, event.about
        run.model, run.provider = about["model"], about["provider"]
        run.beside_search = run.parent in self._open_searches.values()
        beside = about["documents"]
        parts = _prompt_parts(event.payload, beside)
        if not run.inside_search:
            current, carried = _documents_of_messages(event.payload)
            for found in [*current, *documents_in(beside)]:
                self._see(found, run, ranked=self._is_first_seen_in(run, found))
            trace.carried_documents |= carried
            seen = list(trace.documents.values())
            texts = {id(document): text for document, text in about["rewritten"]}
            run.prompt = Prompt(parts, seen, [texts.get(id(entry.document), entry.text) for entry in seen])
        if run.parent is None:
            self._note_inputs([Message(part.role, part.text) for part in parts])
        trace.models.append(run)

    def fold_again(self, event: Event) -> None:
        self._copies[event.run] = self._copies.get(event.run, 1) + 1

    def _note_inputs(self, inputs: Snapshot) -> None:
        trace = self.trace
        if trace.log.grouped and not isinstance(trace.inputs, Opaque):
            return
        if inputs == NO_INPUT_YET:
            trace.streamed = True
        else:
            trace.inputs = OPAQUE if inputs is None else inputs

    # Ends

    def fold_end(self, event: Event) -> None:
        run = self._runs.get(event.run)
        if run is None:
            return
        run.ended_ns = event.time_ns
        output, inputs = event.payload, None
        if isinstance(run, ToolRun):
            self._end_tool(run, output)
        elif isinstance(run, RetrieverRun):
            self._open_searches.pop(event.run, None)
            self._end_search(run, output, event.about)
            output = OPAQUE
        elif isinstance(run, ModelRun):
            run.reply = Reply(output, event.about) if isinstance(output, Message) else Reply(Message("ai"))
            output = run.reply.text
        else:
            inputs = event.about
            self._end_chain(run, output, inputs)
        if run.parent is None:
            self._end_of_top(run, output, inputs)

    def _end_chain(self, run: Run, output: Snapshot, inputs: Snapshot) -> None:
        trace = self.trace
        for found in documents_in(output):
            is_result = run.parent is not None and self._is_first_seen_in(run, found)  # then of a search
            self._see(found, run, ranked=is_result)
            if is_result:
                trace.queries += self._searched_with(run)
            trace.unreadable.pop(run.consumed, None)
        if self._searched_in_vain(run, output, inputs):
            trace.empty_search = True

    def _end_tool(self, run: ToolRun, output: Snapshot) -> None:
        shown: list[SeenDocument] = []
        messages = _tool_messages(output)
        for message in messages:
            artifact = message.artifact if isinstance(message, Message) else None
            if artifact == []:
                self.trace.empty_search = True
            for found in documents_in(artifact):
                shown += self._see(found, run, ranked=True)
        for found in documents_in(output):
            shown += self._see(found, run, ranked=True)
        run.shown = shown
        said = (
            message.content if isinstance(message.content, str) else message.prompt_text
            for message in messages
            if isinstance(message, Message)
        )
        run.result = next(said, output)

    def _end_search(self, run: RetrieverRun, documents: Snapshot, span: SpanAnchor | None) -> None:
        trace = self.trace
        run.span = run.span or span
        if not isinstance(documents, list):
            trace.unreadable[documents.identity if isinstance(documents, Opaque) else id(documents)] = run
        elif not documents:
            trace.empty_search = True
        else:
            # What leaves the outermost search is the ranked result; the lists within are its own affair.
            pairs = [(item, None) if isinstance(item, str) else scored_document(item) for item in documents]
            run.found = self._see([pair for pair in pairs if pair is not None], run, ranked=not run.inside_search)
            trace.unreadable = {key: inner for key, inner in trace.unreadable.items() if not inner.is_within(run)}

    def fold_error(self, event: Event) -> None:
        run, trace = self._runs.get(event.run), self.trace
        if run is None:
            return
        noted, about = event.payload, event.about
        span = about if isinstance(about, SpanAnchor) else None
        run.ended_ns, run.error, run.noted = event.time_ns, noted.kind.__name__, noted
        self._open_searches.pop(event.run, None)
        if isinstance(run, RetrieverRun):
            run.span = run.span or span
        if run.parent is None:
            trace.error, trace.noted = run.error, noted
            self._end_of_top(run, OPAQUE, about if span is None else None)
        elif is_interrupt(noted.kind):
            trace.interrupted.append(run.parent)

    def _end_of_top(self, run: Run, output: Snapshot, inputs: Snapshot) -> None:
        self.trace.output = output
        if inputs is not None:
            self.trace.streamed = True
            self._note_inputs(inputs)
            self._see_all(inputs, run)

    # Between

    def fold_interrupt(self, event: Event) -> None:
        if event.run in self._runs:
            self.trace.interrupted.append(self._runs[event.run])

    def fold_contexts(self, event: Event) -> None:
        self.trace.recorded += event.payload

    # Documents

    def _see_all(self, inputs: Snapshot, run: Run) -> None:
        """Note the documents that a run was called with."""
        for found in documents_in(inputs):
            self._see(found, run, ranked=False, carried=_lie_beside_messages(inputs))

    def _see(self, found: Found, run: Run, *, ranked: bool, carried: bool = False) -> list[SeenDocument]:
        """Note documents that a run shows; `ranked` if the list is the result of a search."""
        seen = []
        for rank, (document, score) in enumerate(found):
            entry = self.trace.documents.get(id(document))
            if entry is None:
                entry = SeenDocument(document, run, rank if ranked else None, score, carried)
                self.trace.documents[id(document)] = entry
            elif ranked:
                entry.carried = False
                entry.rank = rank if entry.rank is None else entry.rank
            seen.append(entry)
        return seen

    def _is_first_seen_in(self, run: Run, found: Found) -> bool:
        """Whether a run brought these documents: nobody had seen them before, but for steps inside it."""
        seen = [self.trace.documents.get(id(document)) for document, _ in found]
        return all(entry is None or entry.first_seen_in.is_within(run) for entry in seen)

    def _searched_with(self, run: Run) -> list[str]:
        """What a step that brought new documents may have searched with: its input, or what a model wrote into that."""
        if isinstance(run.inputs, str):
            return [run.inputs]
        written = {model.reply.text for model in self.trace.models if model.reply is not None}
        fields = run.inputs.values() if type(run.inputs) is dict else ()
        return [text for text in fields if isinstance(text, str) and text in written]

    def _searched_in_vain(self, run: Run, output: Snapshot, inputs: Snapshot) -> bool:
        """Whether a step searched and found nothing: what it gave is called so, or it was given texts and no model spoke."""
        if type(output) is dict:
            return _names_empty_search(output)
        if output != [] or run.name.endswith("Parser") or any(model.is_within(run) for model in self.trace.models):
            return False
        given = run.inputs if inputs is None else inputs  # a stream's input comes with its end
        texts = list(given.values()) if type(given) is dict else [given]
        return all(type(text) is str or text is LONG_TEXT for text in texts)


_FOLD: Mapping[str, Callable[[_Folding, Event], None]] = {
    "chain": _Folding.fold_chain,
    "tool": _Folding.fold_tool,
    "retriever": _Folding.fold_retriever,
    "model": _Folding.fold_model,
    "again": _Folding.fold_again,
    "end": _Folding.fold_end,
    "error": _Folding.fold_error,
    "interrupt": _Folding.fold_interrupt,
    "contexts": _Folding.fold_contexts,
}


def is_interrupt(kind: type[BaseException]) -> bool:
    """Whether a graph raises this to wait for a person."""
    return any(base.__name__ == "GraphInterrupt" for base in kind.__mro__)


def _tool_messages(output: Snapshot) -> Sequence[Snapshot]:
    """The messages in a tool's output: itself, or those of the state update that a command carries."""
    if isinstance(output, Hidden):
        update = output.inside.get("update") if isinstance(output.inside, dict) else None
        output = update.get("messages") if isinstance(update, dict) else None
    return output if isinstance(output, list) else [output]


def _documents_of_messages(messages: Sequence[Snapshot]) -> tuple[list[Found], bool]:
    """The documents that a conversation's messages carry beside their text.

    Those of the user's last message and after it are of the current request; of earlier ones, which are history, it is
    only told whether there are any.
    """
    current: list[Found] = []
    is_current, carried = True, False
    for message in reversed(messages):
        if not isinstance(message, Message):
            continue
        if message.role == "human" and is_current:
            is_current = False
            current = [*documents_in(message.documents), *current]
        elif message.role == "tool":
            found = documents_in(message.artifact)
            if is_current:
                current = [*found, *current]
            else:
                carried = carried or bool(found)
    return current, carried


def _prompt_parts(messages: Sequence[Snapshot], documents: Snapshot) -> list[PromptPart]:
    """The parts of a chat prompt, or of a plain one; some models are called with documents beside the messages."""
    parts = [PromptPart("human", message) for message in messages if isinstance(message, str)]
    parts += [
        PromptPart(message.role, message.prompt_text, message.calls or (), message.call_id)
        for message in messages
        if isinstance(message, Message)
    ]
    return parts if documents is None else [*parts, PromptPart("system", "\n".join(texts_of_documents(documents)))]


_SEARCHED = re.compile(
    r"(?:^|_)(?:docs?|documents?|contexts?|passages?|chunks?|hits|snippets|articles|found|retrieved)"
    r"(?:_(?:list|texts?|found|used))?$|^(?:(?:re)?search_|web_|retrieval_|query_)*results$"
)
_case = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _names_empty_search(output: dict[str, Any]) -> bool:
    """Whether a step gave an empty list in a field that is called a search's result; others are plans, notes, errors."""
    return any(_SEARCHED.search(_case.sub("_", key).lower()) for key, value in output.items() if value == [])


def _lie_beside_messages(inputs: Snapshot) -> bool:
    """Whether a payload is the state of a conversation, whose documents may be an earlier turn's."""
    lists = [value for value in inputs.values() if isinstance(value, list)] if isinstance(inputs, dict) else []
    return any(items and (isinstance(items[-1], Message) or items[-1] is MESSAGE) for items in lists)
