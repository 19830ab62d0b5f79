"""What is noted of a request while it runs: its runs, and the documents that passed by.

These objects are written on the request path, by whatever threads the request uses, and read in the worker once the
request has ended. They hold references to texts; nothing is matched, hashed or serialised here.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from time import time_ns
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from ragspan.records import RetrievedContext, SpanAnchor
from ragspan.step_texts import NotedError
from ragspan_langchain.anchors import openinference_anchor
from ragspan_langchain.payloads.documents import (
    Found,
    id_and_metadata_of,
    lie_beside_messages,
    names_empty_search,
    text_of,
)
from ragspan_langchain.payloads.freezing import OPAQUE, Frozen
from ragspan_langchain.payloads.messages import PromptPart
from ragspan_langchain.payloads.shapes import Shape, shape_of

RunId: TypeAlias = UUID | str


def key_of(run_id: RunId | None) -> int:
    """The number of a run's id: hashing a UUID is a Python call. LangServe gives ids as text."""
    return run_id.int if type(run_id) is UUID else hash(run_id)


class Kind(enum.Enum):
    CHAIN = "chain"
    MODEL = "model"
    RETRIEVER = "retriever"
    TOOL = "tool"


class SeenDocument:
    """A document that passed by, as it was at first sight; the document itself is let go when the request ends."""

    __slots__ = ("carried", "document", "id", "metadata", "rank", "score", "seen_in", "text")

    def __init__(self, document: Any, text: str, rank: int | None, score: float | None, seen_in: Run) -> None:
        self.carried = False  # nobody but the state of a conversation has shown it
        self.document = document
        self.seen_in: Run | None = seen_in
        self.text = text
        self.id, self.metadata = id_and_metadata_of(document)
        self.rank = rank
        self.score = score

    def text_now(self) -> str:
        document = self.document
        text = document.get("page_content") if isinstance(document, dict) else getattr(document, "page_content", None)
        return text if isinstance(text, str) else self.text


class Prompt(NamedTuple):
    """What a model was given."""

    parts: Sequence[PromptPart] = ()
    seen: Sequence[SeenDocument] = ()
    """The documents that had passed by until then."""
    texts: Sequence[str] = ()
    """Their texts at that moment: programs rewrite documents in place."""


class Reply(NamedTuple):
    """What a model gave back."""

    text: str
    calls: Frozen = ()
    """The arguments of its tool calls."""
    about: Sequence[Mapping[str, Any]] = ()
    """What the provider told about it, in whatever form."""
    asked_for: Sequence[tuple[Any, Any]] = ()
    """Name and id of its tool calls."""


class Run:
    """One run of the framework, from its start event to its end event."""

    # Defaults stand here rather than in `__init__`: most runs never change them, and a run is made at every start.
    kind = Kind.CHAIN
    is_search = False
    copies = 1  # how many times the handler stands in the run's list of handlers
    query: str | None = None
    fields: Mapping[str, Any] | None = None  # the input, where it has fields
    consumed = 0  # identity of the unread search result that this run was given
    ended_ns = 0  # 0 while it is open
    error: str | None = None
    noted: NotedError | None = None  # what the error said, of runs that become spans

    def __init__(self, run_id: RunId, key: int, name: str, parent: Run | None, trace: Trace) -> None:
        self.run_id = run_id
        self.key = key
        self.name = name
        self.parent = parent
        self.trace = trace
        self.inside_search: bool = parent is not None and (parent.inside_search or parent.is_search)

    def is_within(self, other: Run) -> bool:
        run = self.parent
        while run is not None:
            if run is other:
                return True
            run = run.parent
        return False

    def searched_with(self) -> list[str]:
        """What a step that brought new documents may have searched with: its input, or what a model wrote into that."""
        if self.query is not None:
            return [self.query]
        written = {model.reply.text for model in self.trace.models if model.reply is not None}
        return [text for text in list((self.fields or {}).values()) if isinstance(text, str) and text in written]

    def searched_in_vain(self, outputs: Any, inputs: Any) -> bool:
        """Whether a step searched and found nothing: what it gave is called so, or it was given texts and no model spoke."""
        shape = shape_of(outputs)
        if shape is Shape.FIELDS:
            return names_empty_search(outputs)
        if shape is not Shape.ITEMS or len(outputs) > 0 or self.name.endswith("Parser"):
            return False
        if any(model.is_within(self) for model in self.trace.models):
            return False
        given = (self.query or self.fields) if inputs is None else inputs  # a stream's input comes with its end
        texts = list(dict.values(given)) if isinstance(given, dict) else [given]
        return all(type(text) is str for text in texts)


class ToolRun(Run):
    """A tool at work."""

    kind = Kind.TOOL
    call_id: Any = None  # of the model's request
    arguments: Frozen = OPAQUE
    result: Frozen = OPAQUE
    shown: Sequence[SeenDocument] = ()  # the documents that it handed on

    def __init__(self, run_id: RunId, key: int, name: str, parent: Run | None, trace: Trace) -> None:
        super().__init__(run_id, key, name, parent, trace)
        self.started_ns = time_ns()


class SearchRun(Run):
    """A retriever at work."""

    kind = Kind.RETRIEVER
    is_search = True
    found: Sequence[SeenDocument] = ()
    told: Mapping[str, Any] = MappingProxyType({})  # its metadata
    span: SpanAnchor | None = None  # that of another instrumentation

    def __init__(self, run_id: RunId, key: int, name: str, parent: Run | None, trace: Trace) -> None:
        super().__init__(run_id, key, name, parent, trace)
        self.started_ns = time_ns()
        self.find_span()

    def find_span(self) -> None:
        """Look for its span. OpenInference may be told of a start after us; then it is told of the end after us, too."""
        if self.span is None:
            self.span = openinference_anchor(self.run_id)


class ModelRun(Run):
    """A call of a language model."""

    kind = Kind.MODEL
    prompt = Prompt()
    model: str | None = None
    provider: str | None = None
    reply: Reply | None = None
    token_calls = 0
    first_token_ns: int | None = None
    last_chunk: Any = None

    def __init__(self, run_id: RunId, key: int, name: str, parent: Run | None, trace: Trace) -> None:
        super().__init__(run_id, key, name, parent, trace)
        self.started_ns = time_ns()
        self.beside_search = parent is not None and parent in list(trace.open_searches.values())
        self.tokens: list[Any] = []


class Trace:
    """One request: the runs below one root, and what was seen in their payloads.

    Without a root it is what was seen inside a `ragspan.capture` block, whose runs have no common one.
    """

    # Defaults stand here for the same reason as above.
    root: Run | None = None
    grouped = False
    is_part = False  # a lone prompt or parser
    empty_search = False
    carried_documents = False  # a prompt's history held documents of earlier turns
    closed = False
    streamed = False
    tokens_delivered = False
    inputs: Frozen = OPAQUE
    output: Frozen = OPAQUE
    is_resumed = False  # it goes on after an interruption; what it was called with and asked before that:
    asked_before: Frozen = OPAQUE
    models_before: Sequence[ModelRun] = ()
    error: str | None = None
    noted: NotedError | None = None
    ended_ns = 0
    anchor: SpanAnchor | None = None
    anchor_pending = False
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, name: str) -> None:
        self.name = name
        self.started_ns = time_ns()
        self.runs: list[Run] = []
        self.models: list[ModelRun] = []
        self.searches: list[SearchRun] = []
        self.tools: list[ToolRun] = []
        self.open_searches: dict[int, Run | None] = {}  # the runs around them
        self.documents: dict[int, SeenDocument] = {}  # by identity while the request runs
        self.queries: list[str] = []
        self.recorded: list[RetrievedContext] = []
        self.unreadable: dict[int, Run] = {}  # search results that only the program may read, by identity
        self.interrupted: list[Run] = []
        self.saved_states: list[Frozen] = []  # inputs of the first steps, where the request had no question

    def find_anchor(self) -> None:
        """Look for the root's span. OpenInference may be told of the root's start after us: then it is there later."""
        anchor = openinference_anchor(self.root.run_id) if self.root is not None else None
        if anchor is not None:
            self.anchor = anchor
            self.anchor_pending = False

    def see(self, found: Found, run: Run, *, ranked: bool, inputs: Any = None) -> Sequence[SeenDocument]:
        """Note documents that a run shows.

        Args:
            found: the documents.
            run: that shows them.
            ranked: the list is the result of a search.
            inputs: what the run was called with, if they lie in that.
        """
        known = self.documents
        seen = []
        for place, (document, score) in enumerate(found):
            entry = known.get(id(document))
            if entry is None:
                text = document if isinstance(document, str) else text_of(document)
                if text is None:
                    continue
                entry = known[id(document)] = SeenDocument(document, text, place if ranked else None, score, run)
                entry.carried = inputs is not None and lie_beside_messages(inputs)
            elif ranked:
                entry.carried = False
                if entry.rank is None:
                    entry.rank = place
            seen.append(entry)
        return seen

    def brought(self, found: Found, run: Run) -> bool:
        """Whether a run brought these documents: nobody had seen them before, but for steps inside it."""
        seen = [self.documents.get(id(document)) for document, _ in found]
        return all(entry is None or (entry.seen_in is not None and entry.seen_in.is_within(run)) for entry in seen)

    def prompt(self, parts: Sequence[PromptPart]) -> Prompt:
        """A prompt together with the documents' texts at this moment."""
        seen = list(self.documents.values())
        return Prompt(parts, seen, [entry.text_now() for entry in seen])

    def forget(self) -> None:
        """Let go of everything."""
        self.documents.clear()
        for noted in (self.runs, self.models, self.searches, self.tools, self.queries, self.recorded, self.interrupted):
            noted.clear()

    def last_start_ns(self) -> int:
        """When something last began that takes time."""
        started = [model.started_ns for model in self.models[-1:]] + [
            search.started_ns for search in self.searches[-1:]
        ]
        return max([self.started_ns, *started])

    def release(self) -> None:
        """Let go of the program's own objects; their texts stay."""
        entries = list(self.documents.values())
        for entry in entries:
            entry.document = entry.seen_in = None
        self.documents = dict(enumerate(entries))
        self.unreadable = dict(enumerate(self.unreadable.values()))
        for run in self.runs:
            run.fields = None
