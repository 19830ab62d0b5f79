"""The record itself, who makes one (`Capture`), and who takes it (`RecordSink`)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast, get_args

from ragspan.exceptions import ConfigurationError
from ragspan.messages import ErrorReport, without_texts
from ragspan.record_json import MAX_CONTEXTS, MAX_STEPS, check, read_as, write_json
from ragspan.records.contexts import (
    MAX_BACKGROUND,
    Background,
    RetrievedContext,
    as_background,
    as_contexts,
    make_plain,
)
from ragspan.records.steps import Generation, Reranking, Retrieval, SpanAnchor, Step, ToolCall
from ragspan.safe_copy import class_name, size_of, text_of

AnswerStatus: TypeAlias = Literal["complete", "aborted", "error", "interrupted"]
UnknownContexts: TypeAlias = Literal[
    "picture", "provider_search", "unseen_prompt", "unmarked_text", "earlier_answer", "too_much"
]


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
    record_id: str = field(default_factory=lambda: uuid.uuid4().hex)
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
        if self.status not in get_args(AnswerStatus):
            raise ValueError(f"status is one of {', '.join(get_args(AnswerStatus))}, not {self.status!r}")
        for part, text in (("question", self.question), ("response", self.response)):
            if text is not None and text_of(text) is None:
                raise ConfigurationError(f"{part} should be a text, not {class_name(type(text))}")
        make_plain(self, "question", "response")
        if self.contexts is not None:
            object.__setattr__(self, "contexts", as_contexts(self.contexts))
            object.__setattr__(self, "contexts_unknown", None)
        if self.evidence:
            object.__setattr__(self, "evidence", as_contexts(self.evidence))
        if self.background:
            object.__setattr__(self, "background", as_background(self.background))
            self._cut_background()
        object.__setattr__(self, "ended_ns", max(self.ended_ns, self.started_ns))

    def _cut_background(self) -> None:
        room, kept = MAX_BACKGROUND, []
        for one in self.background:
            if len(one.text) > room:
                object.__setattr__(self, "background_truncated", True)
            if room:
                kept.append(one if len(one.text) <= room else replace(one, text=one.text[:room]))
            room -= min(room, len(one.text))
        if self.background_truncated:
            object.__setattr__(self, "background", tuple(kept))

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps with a span, one kind after the other: tools, searches, rerankers, models."""
        rerankings = (reranking for reranking in self.rerankings if not reranking.is_filter)
        return (*self.tool_calls, *self.retrievals, *rerankings, *self.generations)

    def without_step_texts(self) -> RagRecord:
        """The same record without the texts that only spans show; `ragspan.messages` lists them."""
        return cast("RagRecord", without_texts(self))

    @property
    def size_hint(self) -> int:
        """Bytes of memory of the record with all that it holds, found without reading its texts."""
        return size_of(self)

    def to_record(self) -> RagRecord:
        return self

    def to_json(self) -> str:
        """The record as JSON text, of which `from_json` makes an equal record.

        Metadata values that JSON cannot hold (locks, clients) become the name of their type.
        """
        return write_json(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> RagRecord:
        """The record that `to_json` wrote; unknown fields are ignored.

        Raises:
            RecordError: it is not a record, or is too large. The message names the field alone.
        """
        record = read_as(cls, text)
        number = sum(map(len, (record.contexts or (), record.evidence, record.background)))
        number += sum(len(search.contexts) for search in record.retrievals)
        number += sum(len(one.given) + len(one.contexts) for one in record.rerankings)
        check("contexts", number, MAX_CONTEXTS)
        check("steps", len(record.steps), MAX_STEPS)
        return record


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
        ...
