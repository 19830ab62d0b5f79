"""The steps of a request as spans show them: its tools, searches, rerankers and calls of models; runs in the worker."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from ragspan.provider_replies import facts_of
from ragspan.records import Generation, Reranking, Retrieval, RetrievedContext, ToolCall
from ragspan.step_texts import ErrorReport, Message, NotedError, ToolRequest
from ragspan_llama_index.contexts import as_context
from ragspan_llama_index.roles import CALL, MODEL, POSTPROCESSING, SEARCH, SYNTHESIS, TOOL, Role, method_of
from ragspan_llama_index.steps import Request, SeenNode, Step
from ragspan_llama_index.texts import question_in

_MAX_OF_A_KIND = 100
_PROVIDERS = "llama_index.llms."
_NO_SEARCH = frozenset({MODEL, SYNTHESIS, CALL, TOOL})
_AGENTS = ("BaseWorkflowAgent", "AgentWorkflow")
_UNNAMED = "Agent"  # the framework's default


class StepRecords:
    """The steps of one request.

    A tool that hands on what its only search found is that search, and no step of its own.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._models = models_in(request)[:_MAX_OF_A_KIND]
        tools = _of(request, TOOL)
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
                started_ns=step.started_ns,
                ended_ns=self._ended_ns(step),
                call_id=self._call_ids.get(id(step)),
                arguments=_as_text(step.arguments),
                result=step.answer_text(),
                error_type=step.error,
                error=report_of(step.noted),
                within=self._places.get(id(step)),
            )
            for step in self._tools
        )

    def retrievals(self) -> tuple[Retrieval, ...]:
        return tuple(self._retrieval(step) for step in _of(self._request, SEARCH))

    def rerankings(self) -> tuple[Reranking, ...]:
        """Of the postprocessors those that are called rerankers; the others filter, or change texts."""
        return tuple(
            Reranking(
                name=step.name,
                query=step.query,
                started_ns=step.started_ns,
                ended_ns=self._ended_ns(step),
                given=_documents(step.given),
                contexts=_documents(step.found or ()),
                model=_text(step.model),
                top_k=_number(step.top_k),
                error_type=step.error,
                error=report_of(step.noted),
                within=self._places.get(id(step)),
            )
            for step in _of(self._request, POSTPROCESSING)
            if step.facts is not None and step.facts.is_reranker
        )

    def generations(self) -> tuple[Generation, ...]:
        return tuple(self._generation(step) for step in self._models)

    def _retrieval(self, step: Step) -> Retrieval:
        tool = self._is_tool.get(id(step))
        return Retrieval(
            name=step.name,
            query=question_in(step.asked, ()),
            started_ns=step.started_ns,
            ended_ns=self._ended_ns(step),
            contexts=tuple(as_context(node, node.text, rank=rank) for rank, node in enumerate(step.found or ())),
            error_type=step.error,
            span=step.span,
            data_source_id=_text(step.source),
            top_k=_number(step.top_k),
            tool_name=None if tool is None else tool.tool_name or tool.name,
            tool_call_id=None if tool is None else self._call_ids.get(id(tool)),
            error=report_of(step.noted),
            within=self._places.get(id(step)),
        )

    def _generation(self, step: Step) -> Generation:
        request = self._request
        facts = facts_of(step.reply)
        stream = request.awaited if step.streams else None
        unread_ns = request.ended_ns if step.streams else 0
        return Generation(
            model=step.model or facts.model or step.name,
            provider=_provider(step),
            started_ns=step.started_ns,
            ended_ns=step.read_ns or unread_ns or self._ended_ns(step),
            first_token_ns=None if stream is None else stream.first_token_ns,
            input_tokens=facts.input_tokens,
            output_tokens=facts.output_tokens,
            finish_reason=facts.finish_reason,
            error_type=step.error,
            response_id=facts.response_id,
            response_model=facts.model,
            cached_tokens=facts.cached_tokens,
            streamed=step.streams,
            prompt=_messages(step),
            reply=_reply(step),
            error=report_of(step.noted),
            within=self._places.get(id(step)),
        )

    def _ended_ns(self, step: Step) -> int:
        return step.ended_ns or self._request.ended_ns


def models_in(request: Request) -> list[Step]:
    """The calls of models; a method that works through another one of the same model is not counted twice."""
    calls = [step for step in request.steps if step.role is MODEL]
    calls = [step for step in calls if not any(inner.role is MODEL for inner in step.children)]
    following = zip_longest(calls, calls[1:])
    return [step for step, after in following if not _only_hands_on(step, after)]


def report_of(noted: NotedError | None) -> ErrorReport | None:
    """What an error said, for the record."""
    return None if noted is None else noted.report()


def _of(request: Request, role: Role) -> list[Step]:
    return [step for step in request.steps if step.role is role][:_MAX_OF_A_KIND]


def _only_hands_on(step: Step, after: Step | None) -> bool:
    """Whether an asynchronous stream is but the synchronous one, begun when it is read; so do the framework's defaults."""
    return step.streams and after is not None and _method(step) == f"a{_method(after)}" and step.name == after.name


def _method(step: Step) -> str:
    return method_of(step.span_id, step.name)


def _search_of(tool: Step) -> Step | None:
    """The search that a tool is: the only thing in it, and the tool gave back what it found, or failed with it."""
    inside = [step for step in tool.walk() if step is not tool]
    if any(step.role in _NO_SEARCH for step in inside):
        return None
    searches = [step for child in tool.children for step in child.walk() if step.role is SEARCH]
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
