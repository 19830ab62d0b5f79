"""What is noted of a request while it runs: its steps, and what they were given and gave back.

These objects are written on the request path, by whatever threads the request uses, and read in the worker once the
request is over. A step knows its inner steps and neither its outer one nor its request, so that no cycle is left for the
collector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import time_ns
from types import MappingProxyType
from typing import Any

from ragspan.records import RetrievedContext, SpanAnchor
from ragspan.step_texts import NotedError
from ragspan_llama_index.anchors import openinference_anchor
from ragspan_llama_index.asking import Asked, Beside, Prompt
from ragspan_llama_index.nodes import SeenNode
from ragspan_llama_index.roles import ASKING, CHUNKS, SEARCH, SYNTHESIS, TOOL, Role
from ragspan_llama_index.streams import Stream


class Step:
    """A span with a role, from its start to its end. Without a role it is what the program itself says."""

    # Defaults stand here rather than in `__init__`: most steps never change them, and one is made at many spans.
    ended_ns = 0  # 0 while it is open
    error: str | None = None
    asked: Asked = ()
    is_run = False  # of an agent or a workflow
    given: Sequence[SeenNode] = ()  # nodes that it works on; of a call, those that its response names
    found: Sequence[SeenNode] | None = None  # nodes that it brought
    superseded = False  # what it brought went through a later step, which tells what was left of it
    texts: Sequence[str] | None = None  # the given nodes as the synthesizer wrote them for the model
    recorded: Sequence[RetrievedContext] = ()  # contexts that the program named
    answer: str | Stream | None = None
    result: Any = None  # what it returned, until the step around it has ended
    origin: Step | None = None  # the inner step whose result it handed on
    streams = False  # it is a model's, and its words come later, past every span
    tokens: list[str | None]  # these words, where the model tells of them
    model: str | None = None
    module = ""  # where the class of a model comes from
    reply: Sequence[Any] = ()  # what a model's provider told about its reply, in whatever form
    prompt: Prompt = ()  # what a model was given
    kind: type | None = None  # the class of a synthesizer or a postprocessor
    fields: Sequence[str] = ()  # the texts in a result that has several parts
    inside_synthesis = False
    span: SpanAnchor | None = None  # of a search: that of another instrumentation
    beside: Beside = ()  # what a prompt's messages have beside their texts
    asked_for: Sequence[Any] = ()  # the tool calls in a model's reply
    said: str | None = None  # of a model inside a synthesis
    read_ns = 0  # when a model's stream had been read
    tool_name: str | None = None
    arguments: Mapping[str, Any] | str | None = None  # of a tool
    query: str | None = None  # of a postprocessor
    top_k: int | None = None
    source: str | None = None  # what a search searched
    noted: NotedError | None = None  # what the error said

    def __init__(self, role: Role | None, name: str, span_id: str, around: Step | None) -> None:
        self.role = role
        self.name = name
        self.span_id = span_id
        self.started_ns = time_ns()
        self.children: list[Step] = []
        if around is not None and (around.inside_synthesis or around.role is SYNTHESIS):
            self.inside_synthesis = True

    def walk(self) -> Iterator[Step]:
        """The step and all inside it, in the order in which they began."""
        yield self
        for child in self.children:
            yield from child.walk()

    def has_for_part(self, role: Role) -> bool:
        """Whether a span of this role directly inside is a part of the step and no step of its own."""
        if role is CHUNKS or role is ASKING:
            return self.role is SYNTHESIS or self.inside_synthesis
        return self.role is role and (role is SEARCH or role is TOOL)

    def is_read_later(self) -> bool:
        """Whether it handed a stream on before it was read."""
        return self.streams or (isinstance(self.answer, Stream) and not self.answer.over)

    def find_span(self) -> None:
        """Look for its span. OpenInference may be told of a start after us; then it is told of the end after us, too."""
        if self.span is None:
            self.span = openinference_anchor(self.span_id)

    def answer_text(self) -> str | None:
        answer = self.answer
        if self.streams and answer is None:
            return "".join(filter(None, self.tokens)) or next(
                filter(None, (inner.answer_text() for inner in self.children)), None
            )
        return answer.text() if isinstance(answer, Stream) else answer


class Request:
    """One request: the steps below its root, and how it went.

    Inside a `ragspan.capture` block the root stands for the block, and nobody tells how that went.
    """

    awaited: Stream | None = None  # the request is over when this one is
    over = False
    aborted = False
    error: str | None = None
    noted: NotedError | None = None
    answerer: type | None = None  # the class whose run it is
    agent_name: Any = None
    ended_ns = 0
    anchor: SpanAnchor | None = None
    anchor_pending = False
    asks_by_itself = False  # models are asked outside of any synthesis, or tools are used
    is_resumed = False  # a run that goes on where an earlier one was interrupted
    earlier: Sequence[Request] = ()  # interrupted runs of the same workflow, one of which may be its beginning
    tags: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, root: Step, *, grouped: bool = False) -> None:
        self.root = root
        self.grouped = grouped
        self.steps: list[Step] = []  # in the order in which they began
        self.span_ids: dict[str, None] = {}
        self.at_work: dict[str, None] = {}  # spans of a workflow's steps that have not ended, or were cancelled
        self.streams: list[Stream] = []
        self.problems: list[str] = []  # types of the errors that spans ended with
        self.unfinished = [True]  # emptied by the one who finishes the request
        self.started_ns = self.last_start_ns = root.started_ns

    def find_anchor(self) -> None:
        """OpenInference may be told of a span after us: then its span is there at the next one."""
        anchor = openinference_anchor(self.root.span_id)
        if anchor is not None:
            self.anchor = anchor
            self.anchor_pending = False

    @property
    def is_interrupted(self) -> bool:
        """Whether it is a run that was left while it waited for somebody."""
        began = len(self.span_ids) > 1
        return self.aborted and self.root.is_run and self.awaited is None and began and not self.at_work


Place = tuple[Request, Step]
"""Where a span belongs: its request, and the step that it is or is a part of."""


def only_reads(place: Place | None, maker: Place) -> bool:
    """Whether what begins here, while a token is made, belongs to what makes the token, and not to who reads it."""
    if place is None or place[0] is not maker[0]:
        return True
    return maker[1].role is SYNTHESIS and not place[1].inside_synthesis
