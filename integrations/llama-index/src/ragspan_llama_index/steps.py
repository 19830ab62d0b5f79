"""The steps of a request, made of its log, and what a record shows of them. Runs in the worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragspan.capturing import RequestLog
from ragspan.config import retrieval_tools
from ragspan.messages import ErrorReport, NotedError
from ragspan.records import RetrievedContext, SpanAnchor
from ragspan.runs import ROLES, Call, PayloadMessage
from ragspan_llama_index.classes import ClassFacts, Role
from ragspan_llama_index.files import File
from ragspan_llama_index.nodes import NodeSnapshot, text_shown
from ragspan_llama_index.payloads import Asked
from ragspan_llama_index.streams import Stream


class SeenNode:
    """A node as it passed by."""

    __slots__ = ("_template", "id", "identity", "later_text", "metadata", "score", "text")

    def __init__(self, snapshot: NodeSnapshot) -> None:
        self.identity, self.score, self.id, self.text, self.metadata, self._template = snapshot
        self.later_text = self.text

    def see_later(self, snapshot: NodeSnapshot) -> None:
        """Note what became of it: programs change nodes in place."""
        *_, self.later_text, _, template = snapshot
        self._template = self._template or template

    def describes_tool(self) -> bool:
        """Whether it describes a tool among which an agent chooses, and is not a context."""
        return self.text.startswith(f"Tool name: {self.metadata.get('name')}\nTool description: ")

    def text_for_model(self) -> str:
        """The text with metadata and template, as the framework writes it into prompts, where that is known."""
        shown = None if self._template is None else text_shown(self.later_text, self.metadata, self._template)
        return self.text if shown is None else shown


def message_of(role: Any, contents: Sequence[str | File], calls: Sequence[Call], call_id: Any) -> PayloadMessage:
    """A message of a prompt."""
    own = ROLES.get(role, role) if isinstance(role, str) else "human"
    read = [(each, each.text() if isinstance(each, File) else each) for each in contents]
    unread = [each.end for each, text in read if isinstance(each, File) and text is None]
    return PayloadMessage(
        own, "\n".join(text for _, text in read if text is not None), list(calls), call_id, unread=unread
    )


class Step:
    """A span with a role, from its start to its end; without a role, a note of the program itself.

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
    texts: Sequence[str] | None = None  # the given nodes as the synthesizer wrote them for the model
    recorded: Sequence[RetrievedContext] = ()  # contexts that the program named
    answer: str | Stream | None = None
    result: int | None = None  # the identity of what it returned
    origin: Step | None = None  # the inner step whose result it handed on
    streams = False  # it is a model's, and its words come later, past every span
    tokens: Sequence[str | None] = ()  # these words, where the model reports them
    model: str | None = None
    reply: Sequence[Any] = ()  # what a model's provider said about its reply, in whatever form
    searched = False  # the model's provider searched by itself
    prompt: Sequence[PayloadMessage] = ()  # what a model was given
    filled: Sequence[str] = ()  # of a method that asks a model: what its prompt template was filled with
    files: Sequence[File] = ()  # those that the user gave with the question
    fields: Sequence[str] = ()  # the texts in a result that has several parts
    span: SpanAnchor | None = None  # of a search: that of another instrumentation
    asked_for: Sequence[Call] = ()  # the tool calls in a model's reply
    said: str | None = None  # of a model inside a synthesis
    read_ns = 0  # when a model's stream had been read
    tool_name: str | None = None
    arguments: Mapping[str, Any] | str | None = None  # of a tool
    query: str | None = None  # of a postprocessor
    top_k: int | None = None
    source: str | None = None  # what a search searched
    noted: NotedError | ErrorReport | None = None  # what the error said

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

    Inside a `ragspan.capture` block the root is the block, whose own status is not known here.
    """

    awaited: Stream | None = None  # the request is over when this one is
    is_handing_on = False  # a workflow's step has ended, and the next one, for which it made an event, has not begun

    def __init__(self, log: RequestLog) -> None:
        self.log = log
        self.retrieval_tools = retrieval_tools()
        self.root = Step(None, "", log.started_ns, None)
        self.steps: list[Step] = []  # in the order in which they began
        self.at_work: set[Any] = set()  # spans of a workflow's steps that have not ended, or were cancelled
        self.problems: list[str] = []  # types of the errors that spans ended with

    @property
    def aborted(self) -> bool:
        return self.log.abandoned or bool(self.log.about.get("aborted"))

    @property
    def is_interrupted(self) -> bool:
        """Whether it is a run that was left while it waited for somebody."""
        is_waiting = len(self.log.keys) > 1 and not (self.at_work or self.is_handing_on)
        return self.aborted and self.root.is_run and self.awaited is None and is_waiting
