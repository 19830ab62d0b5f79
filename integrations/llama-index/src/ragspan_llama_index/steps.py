"""A request as its log tells it: its steps, what they were given and what they gave back. Made and read in the worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragspan.capturing.log import RequestLog
from ragspan.records import RetrievedContext, SpanAnchor
from ragspan.step_texts import NotedError
from ragspan_llama_index.payloads import NodeSnapshot
from ragspan_llama_index.roles import ClassFacts, Role
from ragspan_llama_index.streams import Stream
from ragspan_llama_index.texts import Asked, Beside, Prompt


class SeenNode:
    """A node as it passed by; `is_final` when this is how it reached the answer."""

    __slots__ = ("_fields", "_kind", "id", "identity", "is_final", "metadata", "score", "text")

    def __init__(self, snapshot: NodeSnapshot) -> None:
        self.identity, self.score, self.id, self.text, self.metadata, self._kind, self._fields = snapshot
        self.is_final = False

    def make_final(self, later: NodeSnapshot | None = None) -> None:
        """Say that it reached the answer, as it was then or later."""
        if later is not None and not self.is_final:
            _, _, self.id, self.text, self.metadata, self._kind, self._fields = later
        self.is_final = True

    def describes_tool(self) -> bool:
        """Whether it describes a tool among which an agent chooses, and is no context."""
        return self.text.startswith(f"Tool name: {self.metadata.get('name')}\nTool description: ")

    def text_for_model(self) -> str:
        """The text with metadata and template, as the framework writes it into prompts, of a node that reached one."""
        if self._kind is None or self._fields is None or not self.is_final:
            return self.text
        from llama_index.core.schema import MetadataMode

        try:
            node: Any = object.__new__(self._kind)
            own = {"__dict__": self._fields, "__pydantic_fields_set__": set(self._fields)}
            for name, value in {**own, "__pydantic_extra__": None, "__pydantic_private__": None}.items():
                object.__setattr__(node, name, value)  # as pydantic itself copies one
            return str(node.get_content(metadata_mode=MetadataMode.LLM))
        except Exception:  # noqa: BLE001  a program's own node class, or its broken template
            return self.text


class Step:
    """A span with a role, from its start to its end. Without a role it is what the program itself says.

    A step knows its inner steps and neither its outer one nor its request, so that no cycle is left for the collector.
    """

    # Payloads of the log set these.
    ended_ns = 0  # 0 while it is open
    error: str | None = None
    asked: Asked = ()
    is_run = False  # of an agent or a workflow
    is_resumed = False  # such a run, which goes on where an earlier one was interrupted
    agent_name: Any = None
    given: Sequence[SeenNode] = ()  # nodes that it works on; of a call, those that its response names
    found: Sequence[SeenNode] | None = None  # nodes that it brought
    superseded = False  # what it brought went through a later step, which tells what was left of it
    texts: Sequence[str] | None = None  # the given nodes as the synthesizer wrote them for the model
    recorded: Sequence[RetrievedContext] = ()  # contexts that the program named
    answer: str | Stream | None = None
    result: int | None = None  # the identity of what it returned
    origin: Step | None = None  # the inner step whose result it handed on
    streams = False  # it is a model's, and its words come later, past every span
    tokens: Sequence[str | None] = ()  # these words, where the model tells of them
    model: str | None = None
    reply: Sequence[Any] = ()  # what a model's provider told about its reply, in whatever form
    prompt: Prompt = ()  # what a model was given
    fields: Sequence[str] = ()  # the texts in a result that has several parts
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

    def __init__(self, role: Role | None, span_id: str, started_ns: int, facts: ClassFacts | None) -> None:
        self.role = role
        self.span_id = span_id
        self.started_ns = started_ns
        self.facts = facts
        self.name = "answer" if facts is None else facts.name
        self.children: list[Step] = []

    def walk(self) -> Iterator[Step]:
        """The step and all inside it, in the order in which they began."""
        yield self
        for child in self.children:
            yield from child.walk()

    def has_base(self, name: str) -> bool:
        """Whether the framework's class of this name is among the bases of the step's class."""
        return self.facts is not None and name in self.facts.bases

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

    def __init__(self, log: RequestLog) -> None:
        self.root = Step(None, "", log.started_ns, None)
        self.grouped = log.grouped
        self.steps: list[Step] = []  # in the order in which they began
        self.at_work: set[Any] = set()  # spans of a workflow's steps that have not ended, or were cancelled
        self.problems: list[str] = []  # types of the errors that spans ended with
        self.started_ns, self.ended_ns = log.started_ns, log.ended_ns
        self.anchor = log.anchor
        self.earlier = log.earlier
        self.tags: Mapping[str, Any] = log.about.get("tags") or {}
        self.aborted = log.abandoned or bool(log.about.get("aborted"))
        self.has_begun = len(log.keys) > 1

    @property
    def is_interrupted(self) -> bool:
        """Whether it is a run that was left while it waited for somebody."""
        return self.aborted and self.root.is_run and self.awaited is None and self.has_begun and not self.at_work
