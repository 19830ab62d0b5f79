"""The steps of a request, made of its log, and what a record shows of them. Runs in the worker."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragspan.capturing.log import RequestLog
from ragspan.provider_replies import facts_of
from ragspan.record_json import plain_entries
from ragspan.records import Generation, Reranking, Retrieval, RetrievedContext, SpanAnchor, ToolCall
from ragspan.step_texts import Message, NotedError, ToolRequest
from ragspan_llama_index.objects import ClassFacts, Role
from ragspan_llama_index.payloads import Asked, Beside, NodeSnapshot, Prompt, text_shown
from ragspan_llama_index.streams import Stream


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
        shown = text_shown(self._kind, self._fields)
        return self.text if shown is None else shown


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

    Inside a `ragspan.capture` block the root is the block, whose own status is not known here.
    """

    awaited: Stream | None = None  # the request is over when this one is

    def __init__(self, log: RequestLog) -> None:
        self.log = log
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
        has_begun = len(self.log.keys) > 1
        return self.aborted and self.root.is_run and self.awaited is None and has_begun and not self.at_work


# Nodes as contexts

_SOURCES = ("source", "file_name", "file_path", "url", "title")


def as_context(node: SeenNode, text: str, *, rank: int | None, truncated: bool = False) -> RetrievedContext:
    named = (node.metadata.get(name) for name in _SOURCES)
    return RetrievedContext(
        text=text,
        id=node.id,
        rank=rank,
        score=node.score,
        source=next((source for source in named if isinstance(source, str) and source), None),
        truncated=truncated,
        metadata=plain_entries(node.metadata),
    )


def ranks_in(root: Step) -> Mapping[str | None, int]:
    """By a node's id, its place in the result of the first search that brought it."""
    ranks: dict[str | None, int] = {}
    for step in root.walk():
        if step.role == "search":
            for place, node in enumerate(step.found or ()):
                ranks.setdefault(node.id, place)
    ranks.pop(None, None)
    return ranks


# What a record shows

_MAX_OF_A_KIND = 100
_PROVIDERS = "llama_index.llms."
_NO_SEARCH = frozenset({"model", "synthesis", "call", "tool"})
_AGENTS = ("BaseWorkflowAgent", "AgentWorkflow")
_UNNAMED = "Agent"  # the framework's default


class StepRecords:
    """The steps of one request.

    A tool that hands on what its only search found is that search, and no step of its own.
    """

    def __init__(self, request: Request, models: Sequence[Step]) -> None:
        self._request = request
        self._models = models[:_MAX_OF_A_KIND]
        tools = _of(request, "tool")
        self._is_tool = {id(search): tool for tool in tools if (search := _search_of(tool)) is not None}
        merged = {id(tool) for tool in self._is_tool.values()}
        self._tools = [tool for tool in tools if id(tool) not in merged]
        self._call_ids = _call_ids(tools, self._models)
        self._places = dict(_innermost_tools(request.root, {id(tool): n for n, tool in enumerate(self._tools)}, None))

    def is_agent(self) -> bool:
        """Whether an agent answered: the framework says so, or a tool ran that a model had asked for."""
        root = self._request.root
        return bool(self._call_ids) or (root.is_run and any(map(root.has_base, _AGENTS)))

    def name(self) -> str:
        """What answered: an agent by the name that it was given, all else by its class."""
        given = self._request.root.agent_name
        named = self.is_agent() and isinstance(given, str) and given and given != _UNNAMED
        return given if named else self._request.root.name

    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(
            ToolCall(
                name=step.tool_name or step.name,
                call_id=self._call_ids.get(id(step)),
                arguments=_as_text(step.arguments),
                result=step.answer_text(),
                **self._common(step),
            )
            for step in self._tools
        )

    def retrievals(self) -> tuple[Retrieval, ...]:
        return tuple(self._retrieval(step) for step in _of(self._request, "search"))

    def rerankings(self) -> tuple[Reranking, ...]:
        """Of the postprocessors those that are called rerankers, and those that leave nodes out; the others change texts."""
        return tuple(
            Reranking(
                name=step.name,
                query=step.query,
                given=_documents(step.given),
                contexts=_documents(step.found or ()),
                model=_text(step.model),
                top_k=_number(step.top_k),
                is_filter=not _is_reranker(step),
                **self._common(step),
            )
            for step in _of(self._request, "postprocessing")
            if _is_reranker(step) or (step.found is not None and len(step.found) < len(step.given))
        )

    def generations(self) -> tuple[Generation, ...]:
        return tuple(self._generation(step) for step in self._models)

    def _retrieval(self, step: Step) -> Retrieval:
        tool = self._is_tool.get(id(step))
        return Retrieval(
            name=step.name,
            query=step.asked[0][1] if step.asked else None,
            contexts=tuple(as_context(node, node.text, rank=rank) for rank, node in enumerate(step.found or ())),
            span=step.span,
            data_source_id=_text(step.source),
            top_k=_number(step.top_k),
            tool_name=None if tool is None else tool.tool_name or tool.name,
            tool_call_id=None if tool is None else self._call_ids.get(id(tool)),
            **self._common(step),
        )

    def _generation(self, step: Step) -> Generation:
        facts = facts_of(step.reply)
        stream = self._request.awaited if step.streams else None
        return Generation(
            model=step.model or facts.response_model or step.name,
            provider=_provider(step),
            first_token_ns=None if stream is None or not stream.tokens else stream.first_ns,
            streamed=step.streams,
            prompt=_messages(step),
            reply=_reply(step),
            **facts._asdict(),
            **self._common(step),
        )

    def _common(self, step: Step) -> dict[str, Any]:
        unread_ns = self._request.log.ended_ns if step.streams else 0
        return {
            "started_ns": step.started_ns,
            "ended_ns": step.read_ns or unread_ns or step.ended_ns or self._request.log.ended_ns,
            "error_type": step.error,
            "error": None if step.noted is None else step.noted.report(),
            "within": self._places.get(id(step)),
        }


def _of(request: Request, role: Role) -> list[Step]:
    return [step for step in request.steps if step.role is role][:_MAX_OF_A_KIND]


def _search_of(tool: Step) -> Step | None:
    """The search that a tool is: the only thing in it, and the tool gave back what it found, or failed with it."""
    inside = [step for step in tool.walk() if step is not tool]
    if any(step.role in _NO_SEARCH for step in inside):
        return None
    searches = [step for child in tool.children for step in child.walk() if step.role == "search"]
    if not searches or any(step not in [*searches[0].walk()] for step in searches):
        return None
    search = searches[0]
    if tool.error is not None:
        return search if search.error == tool.error else None
    said = tool.answer_text() or ""
    return search if all(node.text in said for node in search.found or ()) else None


def _innermost_tools(step: Step, tools: dict[int, int], around: int | None) -> Iterator[tuple[int, int | None]]:
    """For each step, the place of the innermost tool around it."""
    yield id(step), around
    inside = tools.get(id(step), around)
    for child in step.children:
        yield from _innermost_tools(child, tools, inside)


def _call_ids(tools: Sequence[Step], models: Sequence[Step]) -> dict[int, str]:
    """The id of the request that each tool answers: the framework does not hand it to the tool."""
    asked = [(model.started_ns, _request(call)) for model in models for call in model.asked_for]
    found: dict[int, str] = {}
    for tool in tools:
        arguments = _as_text(tool.arguments)
        for entry in asked:
            began_ns, request = entry
            if request.name == tool.tool_name and request.arguments == arguments and began_ns <= tool.started_ns:
                asked.remove(entry)
                if request.id is not None:
                    found[id(tool)] = request.id
                break
    return found


def _is_reranker(step: Step) -> bool:
    return step.facts is not None and step.facts.is_reranker


def _documents(nodes: Sequence[SeenNode]) -> tuple[RetrievedContext, ...]:
    return tuple(
        RetrievedContext(text=node.text, id=node.id, rank=rank, score=node.score) for rank, node in enumerate(nodes)
    )


def _messages(step: Step) -> tuple[Message, ...]:
    """What a model was given, each text a message."""
    messages = [Message(role=role or "user", text=text) for role, text in step.prompt]
    for place, role, beside in reversed(step.beside):
        before = messages[place - 1] if place else None
        if isinstance(beside, str):  # a tool's answer
            if before is not None:
                messages[place - 1] = Message(role="tool", text=before.text, tool_call_id=beside)
        elif isinstance(beside, list):
            requests = tuple(map(_request, beside))
            if before is not None and before.role == role:
                requests = (*before.tool_requests, *requests)
                messages[place - 1] = Message(role=before.role, text=before.text, tool_requests=requests)
            else:
                messages.insert(place, Message(role=role or "assistant", text="", tool_requests=requests))
    return tuple(messages)


def _reply(step: Step) -> Message | None:
    said = step.said if step.said is not None else step.answer_text()
    requests = tuple(map(_request, step.asked_for))
    return Message(role="assistant", text=said or "", tool_requests=requests) if said or requests else None


def _request(call: Any) -> ToolRequest:
    """A tool call as the framework has it, or as a provider has."""
    function = _get(call, "function")
    name = next(filter(None, (_get(call, "tool_name"), _get(function, "name"), _get(call, "name"))), None)
    given = [_get(call, "tool_kwargs"), _get(function, "arguments"), _get(call, "input")]
    arguments = next((one for one in given if one is not None), None)
    own_id = next(filter(None, (_get(call, name) for name in ("tool_call_id", "tool_id", "id"))), None)
    return ToolRequest(name=_text(name) or "", id=_text(own_id), arguments=_as_text(arguments))


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def _as_text(value: Any) -> str | None:
    """A payload as a text, or else as JSON; None where there is nothing to show."""
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=lambda one: type(one).__name__)
    except (TypeError, ValueError, RecursionError, RuntimeError):  # the program's own, which it may just be changing
        return None


def _provider(step: Step) -> str | None:
    """Each provider has a package of its own, below the same one."""
    module = "" if step.facts is None else step.facts.module
    name = module.removeprefix(_PROVIDERS)
    return None if name == module else name.partition(".")[0]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> int | None:
    return value if type(value) is int else None
