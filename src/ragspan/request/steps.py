"""The steps of a request, plain data: what a log notes when one begins, and what is known of it in the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from ragspan import field_names
from ragspan.matching import words_of
from ragspan.messages import ErrorReport
from ragspan.records import RetrievedContext, SpanAnchor
from ragspan.request.contents import (
    MAX_FIELDS,
    Document,
    PayloadMessage,
    as_json,
    content_text,
    json_fields,
    texts_in,
    tool_messages,
)
from ragspan.safe_copy import OPAQUE, Snapshot

_MOST = 0.8  # of the words of a tool's result, where it only repeats its input


@dataclass(eq=False, slots=True)
class SeenDocument:
    document: Document
    rank: int | None
    score: float | None
    from_history: bool = False  # only the state of a conversation has shown it
    is_beside: bool = False  # its text is one of a document's metadata
    _context: RetrievedContext | None = None

    @property
    def text(self) -> str:
        return self.document.text

    @property
    def context(self) -> RetrievedContext:
        """The document as a context: one object, for most are found, and reach the prompt."""
        if self._context is not None:
            return self._context
        own = self.document
        sources = map(own.metadata.get, field_names.SOURCE) if own.metadata else ()
        self._context = RetrievedContext(
            text=own.text,
            id=own.id,
            rank=self.rank,
            score=self.score,
            source=next((text for text in sources if type(text) is str and text), None),
            metadata=own.metadata,
        )
        return self._context


@dataclass(eq=False, kw_only=True)
class Step:
    """A step of an answer, from its start to its end: a chain, unless it is of a kind below."""

    name: str
    parent: Step | None  # the step around it
    started_ns: int
    ended_ns: int = 0  # it is 0 while the step is open
    inputs: Snapshot = OPAQUE
    output: Snapshot = OPAQUE
    late_inputs: Snapshot = None  # inputs that came with its end, as a stream's do
    noted: ErrorReport | None = None  # the error that ended it

    @property
    def inside_search(self) -> bool:
        """Whether it serves a search; not inside a synthesis, whose answer the search found: "Query: ... Response: ..."."""
        around = (step for step in self.ancestors() if isinstance(step, (SearchStep, SynthesisStep)))
        return isinstance(next(around, None), SearchStep)

    @property
    def messages(self) -> Sequence[PayloadMessage]:
        given = self.inputs if isinstance(self.inputs, list) else ()
        return [each for each in given if isinstance(each, PayloadMessage)]

    @property
    def error(self) -> str | None:
        return None if self.noted is None else self.noted.name

    def ancestors(self) -> Iterator[Step]:
        """The steps around it, from the innermost out."""
        step = self.parent
        while step is not None:
            yield step
            step = step.parent

    def is_within(self, other: Step) -> bool:
        return other in self.ancestors()


@dataclass(eq=False, kw_only=True)
class ToolStep(Step):
    call_id: Any = None  # the id of the model's request
    shown: Sequence[SeenDocument] = ()  # the documents that it returned

    @property
    def result(self) -> Snapshot:
        """What it returned: the text of its message, if it is one."""
        messages = tool_messages(self.output)
        return next(
            (each.content if isinstance(each.content, str) else each.prompt_text for each in messages), self.output
        )

    @cached_property
    def repeats_call(self) -> bool:
        """Whether its result is hardly more than its input, which a model wrote: an object that it filled, a thought."""
        result, given = self.result, as_json(self.inputs) or ""
        if not isinstance(result, str) or len(result) > 2 * len(given):
            return False  # as mostly
        words, known = words_of(result), set(words_of(given))
        return bool(words) and sum(word in known for word in words) >= _MOST * len(words)


@dataclass(eq=False, kw_only=True)
class SearchStep(Step):
    found: Sequence[SeenDocument] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The search's `top_k` and `data_source_id`, where they are known."""
    span: SpanAnchor | None = None  # the span of another instrumentation

    @property
    def query(self) -> str | None:
        return self.inputs if isinstance(self.inputs, str) else None


@dataclass(eq=False, kw_only=True)
class RerankStep(Step):
    """Puts documents in order, or leaves some out."""

    query: str | None = None
    model: str | None = None
    top_k: int | None = None
    is_filter: bool = False
    """It is not a reranker: it counts where it left documents out, and else changes their texts."""


@dataclass(eq=False, kw_only=True)
class SynthesisStep(Step):
    """Writes an answer from the documents that it was given, by calls of models inside it."""


@dataclass(eq=False, kw_only=True)
class ModelStep(Step):
    """A call of a model; its `inputs` are the messages of its prompt."""

    model: Any = None
    provider: Any = None
    beside: Snapshot = None  # documents that it was given beside its messages
    rewritten: Sequence[tuple[Document, str]] = ()
    """Documents that the program had changed in place until then, with their new texts."""
    prompt: Sequence[PayloadMessage] = ()  # what it was given, as texts; nothing inside a search
    reply: PayloadMessage | None = None
    provider_metadata: Sequence[Mapping[str, Any]] = ()  # what the provider said about the reply, in any form
    tokens: Sequence[Any] = ()
    streamed: bool = False  # it gave its reply as a stream; so does each with a first token
    first_token_ns: int | None = None
    last_chunk: tuple[bool, Sequence[Mapping[str, Any]]] | None = None
    """Whether the last chunk of a stream said that it was the last, and what the provider said with it."""

    @property
    def said(self) -> str:
        """All that it said, or what it had streamed when it was cut off."""
        return "".join(map(content_text, self.tokens)) if self.reply is None else self.reply.text

    @cached_property
    def texts_said(self) -> list[str]:
        """What it said, also in parts: the fields of a JSON text, and the texts in its tool calls."""
        own = [self.said] if self.said.strip() else []
        calls = () if self.reply is None else texts_in(self.reply.arguments)
        return [*own, *json_fields(self.said), *islice(calls, MAX_FIELDS)]


class StepStart(NamedTuple):
    """What is noted about a step when it begins, with its inputs as the payload; of a chain it is its name alone."""

    kind: type[Step]
    name: str
    fields: Mapping[str, Any] = {}
    """The step's own that are known then."""
