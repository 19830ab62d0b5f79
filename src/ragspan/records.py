"""The record of one answered request, independent of any framework; who makes one (`Capture`), and who takes it (`RecordSink`).

All times are Unix nanoseconds. All text is the user's data and is never interpreted.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

from ragspan import field_names
from ragspan.exceptions import ConfigurationError, RecordError
from ragspan.messages import ErrorReport, Message
from ragspan.safe_copy import (
    class_name,
    dict_in,
    fields_of,
    given_items,
    is_dict,
    kept_entries,
    number_of,
    size_of,
    text_keyed,
    text_of,
)

BackgroundKind: TypeAlias = Literal["metadata", "tool", "history", "other"]
AnswerStatus: TypeAlias = Literal["complete", "aborted", "error", "interrupted"]
_STATUSES = get_args(AnswerStatus)
UnknownContexts: TypeAlias = Literal[
    "picture", "provider_search", "unseen_prompt", "unmarked_text", "earlier_answer", "too_much"
]
_PLAIN = frozenset({str, type(None)})
MAX_BACKGROUND = 60_000
"""Characters of background that a record keeps."""
MAX_JSON = 4 * 1024 * 1024
"""Bytes of a record's JSON, or characters of a text. Reading as much takes some tens of megabytes."""
MAX_CONTEXTS = 10_000
"""Contexts or background that an answer by hand may have."""


def check_size(text: str | bytes) -> None:
    """Raise a `RecordError` for more JSON than a record may have."""
    if len(text) > MAX_JSON:
        raise RecordError(f"a record has {MAX_JSON} bytes of JSON at most, but this one has more")


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievedContext:
    """A document that reached the model in its prompt, or that a search found."""

    text: str
    """In a record's contexts what the prompt held of it, in its own spelling; in a search's results its whole text."""
    id: str | None = None
    rank: int | None = None
    """0-based place in the result of the first search that found it; None if no ranked result has it."""
    score: float | None = None
    """The retriever's own score, with its range and direction. A value that is not a finite number becomes None."""
    source: str | None = None
    """The origin of the text: a file, a URL, a title."""
    truncated: bool = False
    """The document has more text than the prompt held."""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if type(self.score) is not float or not math.isfinite(self.score):
            number = number_of(self.score)  # the retriever's library may have its own numbers
            object.__setattr__(self, "score", None if number is None or not math.isfinite(number) else float(number))
        is_plain = type(self.metadata) is dict and _PLAIN.issuperset(map(type, (self.text, self.id, self.source)))
        if self.metadata or not is_plain:
            _make_plain(self, "text", "id", "source")


@dataclass(frozen=True, kw_only=True, slots=True)
class Background:
    """Evidence in a prompt that is not a document."""

    text: str
    kind: BackgroundKind = "other"
    """`metadata`: what stood beside documents. `tool`: the result of a tool that is not a search. `history`: documents and
    results of tools of earlier turns. `other`: what else the program wrote, such as memories or a date."""


def as_contexts(documents: Iterable[Any]) -> tuple[RetrievedContext, ...]:
    """Documents as contexts; a `ConfigurationError` says which has no text.

    A document may be a `RetrievedContext`, a string, a node of LlamaIndex, an object that keeps its text in a plain attribute
    `page_content` (LangChain) or `text`, or a dictionary with one under `text`, `page_content` or `content`, which may also
    have an `id`, `source`, `score`, `rank` and `metadata`. No code of the objects' classes runs, so properties are not read.
    """
    if type(documents) is tuple and {RetrievedContext}.issuperset(map(type, documents)):
        return documents
    items = given_items(documents)
    if items is None:
        kind = class_name(type(documents))
        said = "a single string: write [text]" if kind == "str" else f"{kind}: write list(...)"
        raise ConfigurationError(f"contexts are a list or tuple of texts or documents, not {said}")
    return tuple(map(_context_of, items))


def _context_of(document: Any) -> RetrievedContext:
    if type(document) is RetrievedContext:
        return document
    text = text_of(document)
    if text is not None:
        return RetrievedContext(text=text)
    own = text_keyed(document) if is_dict(document) else fields_of(document)
    names = field_names.TEXT if is_dict(document) else ("page_content", "text")
    node = fields_of(own["node"]) if "node" in own and not is_dict(document) else own  # a node with a score
    texts = (*map(node.get, names), fields_of(node.get("text_resource")).get("text"))
    text = next((text for one in texts if (text := text_of(one)) is not None), None)
    if text is None:
        what = class_name(type(document))
        raise ConfigurationError(
            f"a context is a text, or has one under one of {', '.join(names)}; this {what} has none"
        )
    rank = own.get("rank")
    return RetrievedContext(
        text=text,
        id=field_names.identifier(map(node.get, field_names.ID)),
        rank=rank if type(rank) is int and rank >= 0 else None,
        score=number_of(own.get("score")),
        source=field_names.identifier(map(own.get, field_names.SOURCE)) if is_dict(document) else None,
        metadata=kept_entries(next((node[key] for key in field_names.METADATA if node.get(key) is not None), None)),
    )


def _make_plain(part: Any, *names: str) -> None:
    """Have no texts and no metadata of the program's own classes: what waits runs none of its code, and keeps nothing alive."""
    for name in names:
        text = getattr(part, name)
        if text is not None and type(text) is not str and (own := text_of(text)) is not None:
            object.__setattr__(part, name, own)
    if type(part.metadata) is not dict or part.metadata:
        object.__setattr__(part, "metadata", kept_entries(dict_in(part.metadata), nested=True))


def as_background(texts: Iterable[Any]) -> tuple[Background, ...]:
    """Texts as background: `Background`s, or strings, whose kind is `other`; a `ConfigurationError` for anything else."""
    items = given_items(texts)
    if items is None or any(text_of(one) is None and type(one) is not Background for one in items):
        raise ConfigurationError("background is a sequence of texts and Backgrounds; of a single text, write [text]")
    return tuple(one if type(one) is Background else Background(text=text_of(one) or "") for one in items)


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanAnchor:
    """The identity of a span, as in OpenTelemetry's `SpanContext`, in plain data."""

    trace_id: int
    span_id: int
    trace_flags: int = 1
    trace_state: str = ""
    """In the form of the W3C `tracestate` header."""
    is_remote: bool = False

    @property
    def sampled(self) -> bool:
        return bool(self.trace_flags & 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class TimedStep:
    """What all steps have."""

    started_ns: int
    ended_ns: int
    error_type: str | None = None
    error: ErrorReport | None = None
    within: int | None = None
    """The index in `RagRecord.tool_calls` of the tool that did this; None outside of tools."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Retrieval(TimedStep):
    """One search made for the answer."""

    name: str
    query: str | None
    contexts: tuple[RetrievedContext, ...] = ()
    """The results, in rank order, also those that did not reach the prompt."""
    span: SpanAnchor | None = None
    """The span of another instrumentation for this search, if it is known. Scores of its documents can be written there."""
    data_source_id: str | None = None
    """What was searched: a collection, an index."""
    top_k: int | None = None
    """How many documents were asked for."""
    tool_name: str | None = None
    """The tool that makes this search and returns its results. It has no `ToolCall` of its own."""
    tool_call_id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation(TimedStep):
    """One call of a language model made for the answer."""

    model: str | None
    provider: str | None
    first_token_ns: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    finish_reason: str | None = None
    response_id: str | None = None
    """The provider's id of the reply."""
    response_model: str | None = None
    """The provider's name of the model that replied."""
    cached_tokens: int | None = None
    """The input tokens that the provider read from its cache."""
    streamed: bool = False
    """The reply came in pieces, as far as is known."""
    prompt: tuple[Message, ...] = ()
    reply: Message | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall(TimedStep):
    """One call of a tool made for the answer."""

    name: str
    call_id: str | None = None
    """The id of the model's request, if a model requested the call."""
    arguments: str | None = None
    """JSON, or the tool's only text."""
    result: str | None = None
    """The result for the model or the caller; JSON if it is not a text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reranking(TimedStep):
    """One call of a reranker, which gives documents a new order, or of a filter, which removes some."""

    name: str
    query: str | None
    given: tuple[RetrievedContext, ...] = ()
    """The documents in their previous order."""
    contexts: tuple[RetrievedContext, ...] = ()
    """The remaining documents, in the new order."""
    is_filter: bool = False
    """True for a filter. It shows which step dropped a document, and has no span."""
    model: str | None = None
    top_k: int | None = None
    """How many documents were asked for."""


Step: TypeAlias = ToolCall | Retrieval | Reranking | Generation


@dataclass(frozen=True, kw_only=True, slots=True)
class RagRecord:
    """One answered request: question, contexts, response, and how it went.

    By hand: `RagRecord(question="...", contexts=["..."], response="...")` fills in the id and the times. It is also a capture.
    """

    question: str | None
    """The user's own words."""
    contexts: tuple[RetrievedContext, ...] | None
    """The documents that reached the model, in prompt order. `()`: there were none; None: they could not be observed."""
    response: str | None
    """The answer that the caller got."""
    status: AnswerStatus = "complete"
    error_type: str | None = None
    swallowed_errors: tuple[str, ...] = ()
    """Types of errors that the framework hid from the caller."""
    evidence: tuple[RetrievedContext, ...] = ()
    """The original contexts, if the contexts were themselves generated."""
    record_id: str = field(default_factory=lambda: os.urandom(16).hex())
    run_id: str | None = None
    """LangChain's id of the outermost run, which its other tracers use, too."""
    framework: str = "python"
    name: str = "answer"
    """The name of the chain, engine or agent that answered."""
    started_ns: int = field(default_factory=time.time_ns)
    ended_ns: int = 0
    """By default `started_ns`."""
    parent: SpanAnchor | None = None
    """The span under which the answer belongs."""
    retrievals: tuple[Retrieval, ...] = ()
    generations: tuple[Generation, ...] = ()
    session_id: str | None = None
    user_id: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tool_calls: tuple[ToolCall, ...] = ()
    """In the order of their starts."""
    rerankings: tuple[Reranking, ...] = ()
    is_agent: bool = False
    """A model chose the steps, by calling tools."""
    error: ErrorReport | None = None
    """The error, with status `error`."""
    background: tuple[Background, ...] = ()
    """The other evidence in the prompts, in prompt order: at most `MAX_BACKGROUND` characters of it."""
    background_truncated: bool = False
    """The prompts held more of it."""
    contexts_unknown: UnknownContexts | None = None
    """Why `contexts` is None, if that is known. With other contexts it is None."""
    prompts_seen: bool = False
    """The text of every prompt behind the answer was seen."""
    background_is_prompt: bool = False
    """It is all that may be evidence in the prompts: `unknown_contexts="prompt"`."""
    from_model: bool | None = None
    """False: a model answered, but the response is not its words (a block, a limit, a template)."""

    if TYPE_CHECKING:  # for type checkers: contexts may be plain strings

        def __init__(
            self,
            *,
            question: str | None,
            contexts: Iterable[RetrievedContext | str] | None,
            response: str | None,
            evidence: Iterable[RetrievedContext | str] = (),
            background: Iterable[Background | str] = (),
            **others: Any,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.status not in _STATUSES:
            raise ValueError(f"status is one of {', '.join(_STATUSES)}, not {self.status!r}")
        for part, text in (("question", self.question), ("response", self.response)):
            if text is not None and type(text) is not str and text_of(text) is None:
                raise ConfigurationError(f"{part} should be a text, not {class_name(type(text))}")
        _make_plain(self, "question", "response")
        if self.contexts is not None:
            object.__setattr__(self, "contexts", as_contexts(self.contexts))
            object.__setattr__(self, "contexts_unknown", None)
        if self.evidence:
            object.__setattr__(self, "evidence", as_contexts(self.evidence))
        room, kept = MAX_BACKGROUND, []
        for one in as_background(self.background) if self.background else ():
            if room:
                kept.append(one if len(one.text) <= room else replace(one, text=one.text[:room]))
            if len(one.text) > room:
                object.__setattr__(self, "background_truncated", True)
            room -= min(room, len(one.text))
        object.__setattr__(self, "background", tuple(kept))
        object.__setattr__(self, "ended_ns", max(self.ended_ns, self.started_ns))

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps with a span, one kind after the other: tools, searches, rerankers, models."""
        rerankings = (reranking for reranking in self.rerankings if not reranking.is_filter)
        return (*self.tool_calls, *self.retrievals, *rerankings, *self.generations)

    @property
    def size_hint(self) -> int:
        """Bytes of memory of the record with all that it holds, found without reading its texts."""
        return size_of(self)

    def to_record(self) -> RagRecord:
        return self

    def to_json(self) -> str:
        """The record as JSON text; half of a surrogate pair becomes `?`."""
        import msgspec

        try:
            return msgspec.json.encode(self).decode()
        except UnicodeEncodeError:
            text = json.dumps(asdict(self), ensure_ascii=False).encode("utf-8", "replace")
            return msgspec.json.encode(json.loads(text, parse_constant=lambda _: None)).decode()  # not NaN, as above

    @classmethod
    def from_json(cls, text: str | bytes) -> RagRecord:
        """The record that `to_json` wrote; unknown fields are ignored.

        Raises:
            RecordError: it is not a record, or is too large. The message names the field alone.
        """
        import msgspec

        check_size(text)
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise RecordError(f"this JSON is not a record: {error}") from None


class Capture(Protocol):
    """A handler submits it on the request path; the worker makes a record of it."""

    @property
    def size_hint(self) -> int:
        """Bytes of all that it holds, for the queue's limit; quick to compute."""

    def to_record(self) -> RagRecord | None:
        """The record, made in the worker; None if there is nothing to score."""


class RecordSink(Protocol):
    """Takes captures: the engine, or a broker's sink."""

    def submit(self, capture: Capture) -> None:
        """Take a capture. Never blocks, never raises."""
