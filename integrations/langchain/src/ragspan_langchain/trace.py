"""One request as its log tells it: its runs, and the documents that passed by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ragspan.capturing.log import RequestLog
from ragspan.capturing.snapshots import OPAQUE, Opaque, Snapshot
from ragspan.records import RetrievedContext, SpanAnchor
from ragspan.step_texts import NotedError
from ragspan_langchain.payloads import Call, Document, Message, text_of


@dataclass(eq=False, slots=True)
class SeenDocument:
    """A document that passed by."""

    document: Document | str
    first_seen_in: Run
    rank: int | None
    score: float | None
    carried: bool = False
    """Nobody but the state of a conversation has shown it."""

    @property
    def text(self) -> str:
        return self.document if isinstance(self.document, str) else self.document.text

    @property
    def id(self) -> str | None:
        return None if isinstance(self.document, str) else self.document.id

    @property
    def metadata(self) -> Mapping[str, Any]:
        return {} if isinstance(self.document, str) else self.document.metadata


class PromptPart(NamedTuple):
    """One message of a prompt, or all of a plain prompt."""

    role: str
    text: str
    calls: Sequence[Call] = ()
    """Of a model's message its tool calls."""
    call_id: Any = None
    """Of a tool's message the call that it answers."""


class Prompt(NamedTuple):
    """What a model was given."""

    parts: Sequence[PromptPart] = ()
    seen: Sequence[SeenDocument] = ()
    """The documents that had passed by until then."""
    texts: Sequence[str] = ()
    """Their texts at that moment: programs rewrite documents in place."""


_NO_PROMPT = Prompt()


class Reply:
    """What a model gave back."""

    def __init__(self, message: Message, about: Sequence[Mapping[str, Any]] = ()) -> None:
        self.text = message.text
        self.requests: Sequence[Call] = message.calls or ()
        self.calls: Sequence[Snapshot] = message.arguments
        """The arguments of its tool calls."""
        self.about = about
        """What the provider told about it, in whatever form."""


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
    error: str | None = None
    noted: NotedError | None = None
    inside_search: bool = field(init=False)

    def __post_init__(self) -> None:
        around = self.parent
        self.inside_search = around is not None and (around.inside_search or isinstance(around, RetrieverRun))

    def is_within(self, other: Run) -> bool:
        run = self.parent
        while run is not None and run is not other:
            run = run.parent
        return run is other


@dataclass(eq=False, kw_only=True)
class ToolRun(Run):
    """A tool at work."""

    call_id: Any = None
    """Of the model's request."""
    result: Snapshot = OPAQUE
    shown: Sequence[SeenDocument] = ()
    """The documents that it handed on."""


@dataclass(eq=False, kw_only=True)
class RetrieverRun(Run):
    """A retriever at work."""

    found: Sequence[SeenDocument] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    span: SpanAnchor | None = None
    """That of another instrumentation."""

    @property
    def query(self) -> str | None:
        return self.inputs if isinstance(self.inputs, str) else None


@dataclass(eq=False, kw_only=True)
class ModelRun(Run):
    """A call of a language model."""

    model: Any = None
    provider: Any = None
    prompt: Prompt = _NO_PROMPT
    reply: Reply | None = None
    tokens: Sequence[Any] = ()
    first_token_ns: int | None = None
    last_chunk: Any = None
    beside_search: bool = False
    """A search was going on beside it."""

    @property
    def said(self) -> str:
        """All that it said, or what it had streamed when it was cut off."""
        return "".join(map(text_of, self.tokens)) if self.reply is None else self.reply.text


class Trace:
    """One request: the runs below one root. Inside a `ragspan.capture` block they have no common one.

    Args:
        log: that of the request.
        before: the request that it goes on from after an interruption.
    """

    def __init__(self, log: RequestLog, before: Trace | None) -> None:
        self.log = log
        self.name = ""
        self.root: Run | None = None
        self.inputs: Snapshot = OPAQUE
        self.output: Snapshot = OPAQUE
        self.saved_states: list[Snapshot] = []
        """Inputs of the first steps, where the request had no question."""
        self.streamed = False
        self.error: str | None = None
        self.noted: NotedError | None = None
        self.runs: list[Run] = []
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
        self.queries: list[str] = [] if before is None else list(before.queries)
        self.models_before: Sequence[ModelRun] = () if before is None else (*before.models_before, *before.models)
        self.asked_before: Snapshot = OPAQUE if before is None else _asked(before)

    @property
    def model_runs(self) -> list[ModelRun]:
        """The calls of models that may have served the answer: not those that a retriever makes for itself."""
        return [run for run in (*self.models_before, *self.models) if not run.inside_search]


def _asked(trace: Trace) -> Snapshot:
    asked = next((asked for asked in (trace.inputs, trace.asked_before) if not isinstance(asked, Opaque)), OPAQUE)
    return trace.saved_states[-1] if asked is OPAQUE and trace.saved_states else asked
