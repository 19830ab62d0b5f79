"""Turns the log of a request into its trace: its runs and the documents that were seen; pure, and run in the worker."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ragspan.capturing.log import Event, RequestLog, RunKey
from ragspan.capturing.snapshots import LONG_TEXT, OPAQUE, Opaque, Snapshot
from ragspan.records import RetrievedContext, SpanAnchor
from ragspan.runs.payloads import (
    Document,
    Found,
    Message,
    documents_in,
    documents_of_messages,
    is_conversation,
    prompt_of,
    scored_document,
    text_of,
    tool_messages,
)
from ragspan.step_texts import MAX_MESSAGE, TOOL_ERROR, ErrorReport, NotedError

INTERRUPT = "GraphInterrupt"
"""A graph raises an error of this name to wait for a person."""
MAX_SAVED_STATES = 5
NO_INPUT_YET = {"input": ""}
"""The input with which a stream starts; its real input comes with its end."""


@dataclass(eq=False, slots=True)
class SeenDocument:
    """A document that a run showed."""

    document: Document
    rank: int | None
    score: float | None
    carried: bool = False
    """Only the state of a conversation has shown it."""

    @property
    def text(self) -> str:
        return self.document.text


@dataclass(eq=False, kw_only=True)
class Run:
    """One run of the framework, from its start event to its end event: of a chain, unless it is of a kind below."""

    name: str
    parent: Run | None
    started_ns: int
    ended_ns: int = 0
    """0 while it is open."""
    inputs: Snapshot = OPAQUE
    consumed: int = 0
    """Identity of the unread search result that it was given."""
    noted: NotedError | ErrorReport | None = None
    """The error that ended it."""
    inside_search: bool = field(init=False)

    def __post_init__(self) -> None:
        around = self.parent
        self.inside_search = around is not None and (around.inside_search or isinstance(around, RetrieverRun))

    @property
    def error(self) -> str | None:
        return None if self.noted is None else self.noted.name

    def around(self) -> Iterator[Run]:
        """The runs around it, the innermost first."""
        run = self.parent
        while run is not None:
            yield run
            run = run.parent

    def is_within(self, other: Run) -> bool:
        return other in self.around()


@dataclass(eq=False, kw_only=True)
class ToolRun(Run):
    call_id: Any = None
    """Of the model's request."""
    result: Snapshot = OPAQUE
    shown: Sequence[SeenDocument] = ()
    """The documents that it returned."""


@dataclass(eq=False, kw_only=True)
class RetrieverRun(Run):
    found: Sequence[SeenDocument] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    span: SpanAnchor | None = None
    """That of another instrumentation."""

    @property
    def query(self) -> str | None:
        return self.inputs if isinstance(self.inputs, str) else None


@dataclass(eq=False, kw_only=True)
class ModelRun(Run):
    model: Any = None
    provider: Any = None
    prompt: Sequence[Message] = ()
    """What it was given, as texts; nothing inside a search."""
    seen: Mapping[SeenDocument, str] = field(default_factory=dict)
    """The documents that were seen until then, with their texts at that moment: programs change them in place."""
    reply: Message | None = None
    told: Sequence[Mapping[str, Any]] = ()
    """What the provider said about the reply, in any form."""
    tokens: Sequence[Any] = ()
    first_token_ns: int | None = None
    last_chunk: tuple[bool, Sequence[Mapping[str, Any]]] | None = None
    """Of a stream, whether its last chunk said that it was the last, and what the provider told with it."""
    beside_search: bool = False
    """A search was going on beside it."""

    @property
    def said(self) -> str:
        """All that it said, or what it had streamed when it was cut off."""
        return "".join(map(text_of, self.tokens)) if self.reply is None else self.reply.text


_AnyRun = TypeVar("_AnyRun", bound=Run)


def trace_of(log: RequestLog) -> Trace:
    """The trace of a request, with what was found before it was interrupted."""
    before = None
    for earlier in log.earlier:
        before = Trace(earlier, before)
    return Trace(log, before)


class Trace:
    """One request, made of its log and of the request that it continues after an interruption, if any.

    Its runs are below one root; inside a `ragspan.capture` block they have no common one.
    """

    def __init__(self, log: RequestLog, before: Trace | None) -> None:
        self.log = log
        self.root: Run | None = None
        self.inputs: Snapshot = OPAQUE
        self.output: Snapshot = OPAQUE
        self.saved_states: list[Snapshot] = []
        """Inputs of the first steps, where the request had no question."""
        self.streamed = False
        self.noted: NotedError | ErrorReport | None = None
        self.runs: dict[RunKey, Run] = {}
        self.models: list[ModelRun] = []
        self.searches: list[RetrieverRun] = []
        self.tools: list[ToolRun] = []
        self.interrupted: list[Run] = []
        self.recorded: list[RetrievedContext] = []
        self.unreadable: dict[int, Run] = {}
        """Search results that only the program may read, by identity."""
        self.empty_search = False
        self.carried_documents = False
        """A prompt's history held documents of earlier turns."""
        self.documents: dict[int, SeenDocument] = {} if before is None else dict(before.documents)
        self._first_seen_in: dict[SeenDocument, Run] = {}
        """Of this request. Documents do not know their runs, which hold them: cycles would wait for the garbage collector."""
        self.queries: list[str] = [] if before is None else list(before.queries)
        self.models_before: Sequence[ModelRun] = () if before is None else (*before.models_before, *before.models)
        self.asked_before: Snapshot = OPAQUE if before is None else before.asked
        self._copies: dict[RunKey, int] = {}  # how many times the handler is in the run's list of handlers
        for event in log.history:
            getattr(self, f"_{event.kind}")(event)
        for key, stream in log.streams.items():
            run = self.runs.get(key)
            if isinstance(run, ModelRun):
                run.tokens = stream.tokens[:: self._copies.get(key, 1)]
                run.first_token_ns, run.last_chunk = stream.first_ns, stream.last_chunk

    @property
    def error(self) -> str | None:
        if self.log.abandoned:
            return "GeneratorExit"  # as for a stream that its reader closed
        return None if self.noted is None else self.noted.name

    @property
    def name(self) -> str:
        return next((run.name for run in self.runs.values()), "")

    @property
    def model_runs(self) -> list[ModelRun]:
        """The calls of models that may have served the answer: not those inside a retriever."""
        return [run for run in (*self.models_before, *self.models) if not run.inside_search]

    @property
    def asked(self) -> Snapshot:
        """What the request was called with; after an interruption, what the first request was called with."""
        asked = next((asked for asked in (self.inputs, self.asked_before) if not isinstance(asked, Opaque)), OPAQUE)
        return self.saved_states[-1] if asked is OPAQUE and self.saved_states else asked

    # Starts

    def _start(self, make: type[_AnyRun], event: Event) -> _AnyRun:
        parent = None if event.parent is None else self.runs.get(event.parent)
        name = event.about if isinstance(event.about, str) else event.about["name"]
        run = make(name=name, parent=parent, started_ns=event.time_ns, inputs=event.payload)
        if event.run == self.log.root and self.root is None:
            self.root = run
        if parent is None:
            self._note_inputs(event.payload)
        self.runs[event.run] = run
        return run

    def _chain(self, event: Event) -> None:
        run, inputs = self._start(Run, event), event.payload
        if run.parent is not None and isinstance(self.inputs, Opaque) and len(self.saved_states) < MAX_SAVED_STATES:
            self.saved_states.append(inputs)  # called with a command, not a question: steps have the state
        if isinstance(inputs, Opaque) and inputs.identity in self.unreadable:
            run.consumed = inputs.identity
        self._see_all(inputs, run)

    def _tool(self, event: Event) -> None:
        run = self._start(ToolRun, event)
        run.call_id = event.about["call_id"]
        self.tools.append(run)
        texts = run.inputs.values() if isinstance(run.inputs, dict) else [run.inputs]
        self.queries += [text for text in texts if isinstance(text, str)]

    def _retriever(self, event: Event) -> None:
        run = self._start(RetrieverRun, event)
        run.metadata, run.span = event.about["metadata"], event.about["span"]
        if run.query is not None:
            self.queries.append(run.query)
        self.searches.append(run)

    def _model(self, event: Event) -> None:
        run, about = self._start(ModelRun, event), event.about
        run.model, run.provider, beside = about["model"], about["provider"], about["documents"]
        open_searches = (search for search in self.searches if not search.ended_ns)
        run.beside_search = any(search.parent is run.parent is not None for search in open_searches)
        if not run.inside_search:
            current, carried = documents_of_messages(event.payload)
            for found in [*current, *documents_in(beside)]:
                self._see(found, run, ranked=self._is_first_seen_in(run, found))
            self.carried_documents |= carried
            texts = {id(document): text for document, text in about["rewritten"]}
            run.seen = {entry: texts.get(id(entry.document), entry.text) for entry in self.documents.values()}
            run.prompt = prompt_of(event.payload, beside)
        self.models.append(run)

    def _again(self, event: Event) -> None:
        self._copies[event.run] = self._copies.get(event.run, 1) + 1

    def _note_inputs(self, inputs: Snapshot) -> None:
        if self.log.grouped and not isinstance(self.inputs, Opaque):
            return
        if inputs == NO_INPUT_YET:
            self.streamed = True
        else:
            self.inputs = OPAQUE if inputs is None else inputs

    # Ends

    def _end(self, event: Event) -> None:
        run = self.runs.get(event.run)
        if run is None:
            return
        run.ended_ns = event.time_ns
        output, inputs = event.payload, None
        if isinstance(run, ToolRun):
            self._end_tool(run, output)
        elif isinstance(run, RetrieverRun):
            self._end_search(run, output, event.about)
            output = OPAQUE
        elif isinstance(run, ModelRun):
            run.reply, run.told = (output, event.about) if isinstance(output, Message) else (Message("ai"), ())
            output = run.reply.text
        else:
            inputs = event.about
            self._end_chain(run, output, inputs)
        if run.parent is None:
            self._end_top(run, output, inputs)

    def _end_chain(self, run: Run, output: Snapshot, inputs: Snapshot) -> None:
        for found in documents_in(output):
            is_result = run.parent is not None and self._is_first_seen_in(run, found)  # then of a search
            self._see(found, run, ranked=is_result)
            if is_result:
                self.queries += self._searched_with(run)
            self.unreadable.pop(run.consumed, None)
        self.empty_search |= self._searched_in_vain(run, output, inputs)

    def _end_tool(self, run: ToolRun, output: Snapshot) -> None:
        messages = tool_messages(output)
        failed = next((message for message in messages if message.failed), None)
        if failed is not None:  # the tool's caller made a result of the error
            run.noted = ErrorReport(type=TOOL_ERROR, message=failed.text[:MAX_MESSAGE], stacktrace="")
        artifacts = [message.artifact for message in messages]
        self.empty_search |= [] in artifacts
        lists = [found for shown in (*artifacts, output) for found in documents_in(shown)]
        run.shown = [entry for found in lists for entry in self._see(found, run, ranked=True)]
        said = (each.content if isinstance(each.content, str) else each.prompt_text for each in messages)
        run.result = next(said, output)

    def _end_search(self, run: RetrieverRun, documents: Snapshot, span: SpanAnchor | None) -> None:
        run.span = run.span or span
        if not isinstance(documents, list):
            self.unreadable[documents.identity if isinstance(documents, Opaque) else id(documents)] = run
        elif not documents:
            self.empty_search = True
        else:
            # Only the outermost search gives the ranked result; the lists inside it do not count.
            items = (Document(item, None, {}) if isinstance(item, str) else item for item in documents)
            found = [pair for pair in map(scored_document, items) if pair is not None]
            run.found = self._see(found, run, ranked=not run.inside_search)
            self.unreadable = {key: inner for key, inner in self.unreadable.items() if not inner.is_within(run)}

    def _error(self, event: Event) -> None:
        run = self.runs.get(event.run)
        if run is None:
            return
        run.ended_ns, run.noted = event.time_ns, event.payload
        if isinstance(run, RetrieverRun):
            run.span = run.span or event.about
        if run.parent is None:
            self.noted = run.noted
            self._end_top(run, OPAQUE, None if isinstance(event.about, SpanAnchor) else event.about)
        elif event.payload.is_a(INTERRUPT):
            self.interrupted.append(run.parent)

    def _end_top(self, run: Run, output: Snapshot, inputs: Snapshot) -> None:
        self.output = output
        if inputs is not None:
            self.streamed = True
            self._note_inputs(inputs)
            self._see_all(inputs, run)

    # Between

    def _interrupt(self, event: Event) -> None:
        if event.run in self.runs:
            self.interrupted.append(self.runs[event.run])

    def _contexts(self, event: Event) -> None:
        self.recorded += event.payload
        self.empty_search |= not event.payload  # the program says that nothing was found

    # Documents

    def _see_all(self, inputs: Snapshot, run: Run) -> None:
        """Note the documents that a run was called with."""
        for found in documents_in(inputs):
            self._see(found, run, ranked=False, carried=is_conversation(inputs))

    def _see(self, found: Found, run: Run, *, ranked: bool, carried: bool = False) -> list[SeenDocument]:
        """Note documents that a run shows; `ranked` if the list is the result of a search."""
        seen = []
        for rank, (document, score) in enumerate(found):
            entry = self.documents.get(id(document))
            if entry is None:
                entry = SeenDocument(document, rank if ranked else None, score, carried)
                self.documents[id(document)], self._first_seen_in[entry] = entry, run
            elif ranked:
                entry.carried = False
                entry.rank = rank if entry.rank is None else entry.rank
            seen.append(entry)
        return seen

    def _is_first_seen_in(self, run: Run, found: Found) -> bool:
        """Whether a run found these documents: no other run had shown them before, except for steps inside it."""
        for document, _ in found:
            entry = self.documents.get(id(document))
            if entry is not None and (
                (seen_in := self._first_seen_in.get(entry)) is None or not seen_in.is_within(run)
            ):
                return False
        return True

    def _searched_with(self, run: Run) -> list[str]:
        """What a step that found new documents may have searched with: its input, or what a model wrote into that."""
        if isinstance(run.inputs, str):
            return [run.inputs]
        written = {model.reply.text for model in self.models if model.reply is not None}
        fields = run.inputs.values() if type(run.inputs) is dict else ()
        return [text for text in fields if isinstance(text, str) and text in written]

    def _searched_in_vain(self, run: Run, output: Snapshot, inputs: Snapshot) -> bool:
        """Whether a step searched and found nothing: its output has such a name, or it was given texts and no model answered."""
        if type(output) is dict:
            empty = [_case.sub("_", key).lower() for key, value in output.items() if value == []]
            return any(map(_SEARCHED.search, empty))  # other empty lists are plans, notes, errors
        if output != [] or run.name.endswith("Parser") or any(model.is_within(run) for model in self.models):
            return False
        given = run.inputs if inputs is None else inputs  # a stream's input comes with its end
        texts = list(given.values()) if type(given) is dict else [given]
        return all(type(text) is str or text is LONG_TEXT for text in texts)


_SEARCHED = re.compile(
    r"(?:^|_)(?:docs?|documents?|contexts?|passages?|chunks?|hits|snippets|articles|found|retrieved)"
    r"(?:_(?:list|texts?|found|used))?$|^(?:(?:re)?search_|web_|retrieval_|query_)*results$"
)
_case = re.compile(r"(?<=[a-z])(?=[A-Z])")
