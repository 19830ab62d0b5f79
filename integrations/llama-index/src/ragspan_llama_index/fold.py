"""Makes the record of a request from its log; pure functions, for the worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any

from ragspan import field_names
from ragspan.capturing import Event, EventKind, RequestLog, RunKey
from ragspan.messages import ErrorReport, NotedError
from ragspan.record_json import plain_entries
from ragspan.records import AnswerStatus, RagRecord
from ragspan.runs import (
    Document,
    PayloadMessage,
    RequestTree,
    documents_of_result,
    first_of,
    question_in,
    without_thoughts,
)
from ragspan.runs import Step as CommonStep
from ragspan_llama_index.classes import SPEAKING, UUID_LENGTH
from ragspan_llama_index.contexts import Provenance, speakers_in
from ragspan_llama_index.nodes import NodeSnapshot
from ragspan_llama_index.runs import Runs
from ragspan_llama_index.steps import Request, SeenNode, Step, message_of
from ragspan_llama_index.streams import Stream

_MAX_NODES = 1_000

# Errors that steer a workflow; nobody hides them from anybody.
_NO_ERRORS = frozenset({"CancelledError", "GeneratorExit", "StopIteration", "StopAsyncIteration", "WaitingForEvent"})


def record_of(log: RequestLog) -> RagRecord | None:
    """The record of a finished request; None when nothing was answered."""
    request = request_of(log)
    root = request.root
    join_beginning(request)
    root.answer = _answer_among(root)
    status, error_type = _status_of(request)
    question, response, models = _question(request), _response(request), models_in(request)
    if root.is_run and status == "complete" and not (response or models):
        return None  # it did other work: read documents in, say
    steps, noted = Runs(request, models), _noted(request)
    provenance = Provenance(root, steps.tree, steps.models, question)
    grounds = provenance.grounds(response, is_mixed=bool(steps.others))
    tags = log.about.get("tags") or {}
    return RagRecord(
        question=question,
        response=response,
        status=status,
        error_type=error_type,
        swallowed_errors=_swallowed(request) if status == "complete" else (),
        evidence=provenance.evidence(grounds.contexts),
        framework="llama_index",
        name=steps.name(),
        started_ns=log.started_ns,
        ended_ns=log.ended_ns,
        parent=log.anchor,
        retrievals=steps.retrievals(),
        generations=steps.generations(),
        session_id=first_of(tags, field_names.SESSION),
        user_id=first_of(tags, field_names.USER),
        metadata=_own(tags),
        tool_calls=steps.tool_calls(),
        rerankings=steps.rerankings(),
        is_agent=steps.is_agent(),
        error=noted.report() if status == "error" and noted is not None else None,
        **grounds._asdict(),
    )


def tree_inside(log: RequestLog, around: Mapping[RunKey, CommonStep]) -> RequestTree:
    """The tree of what happened inside another framework's request, by the steps around its outermost ones."""
    request = request_of(log)
    return Runs(request, models_in(request), around).tree


# From events to steps


def request_of(log: RequestLog) -> Request:
    """The steps of a request, from its log."""
    request = Request(log)
    steps: dict[Any, Step] = {"": request.root}
    later: Mapping[int, NodeSnapshot] = {}  # the nodes as they were at the end
    for event in log.history:
        kind, run, parent, time_ns, payload, about = event
        if kind in {EventKind.START, EventKind.CONTEXTS}:
            role, facts = about or (None, None)
            step = Step(role, str(run), time_ns, facts)
            request.steps.append(step)
            _take(step, payload)
            if run == log.root:
                request.root = step
            else:
                steps[parent].children.append(step)
            if run:
                steps[run] = step
        elif kind is EventKind.NODES:
            later = payload
        else:
            _continue(request, steps.get(run), event)
    request.awaited = _awaited(request.root)
    for step in request.steps if later else ():
        for node in step.found or ():
            if node.identity in later:
                node.see_later(later[node.identity])
    return request


def _continue(request: Request, step: Step | None, event: Event) -> None:
    """Add an event that is not a start: it belongs to a step that has begun, or to none."""
    kind, run, _, time_ns, payload, about = event
    if kind is EventKind.WORK:
        request.at_work.add(run)
        request.is_handing_on = False
        step = None if request.root.asked else request.root
    elif kind is EventKind.WORK_OVER:
        request.at_work.discard(run)
        request.is_handing_on = bool(about)
    elif kind is EventKind.ERROR:
        request.problems.append(payload["error"])
        if not about:  # it is not a cancellation
            request.at_work.discard(run)
    if step is None:
        return
    _take(step, payload)
    if kind is EventKind.READ:
        step.read_ns = time_ns
    elif kind in {EventKind.END, EventKind.ERROR}:
        step.ended_ns = time_ns
        if step.role == "tool" and step.found is None and step.tool_name in request.retrieval_tools:
            step.found = list(map(_as_node, documents_of_result(step.answer_text())))
        if step.role in {"call", "synthesis"}:
            step.origin = next((child for child in reversed(step.children) if _handed_on(child, step)), None)


def _take(step: Step, payload: Mapping[str, Any] | None) -> None:
    """Set a payload's attributes of a step. Only the texts that a synthesizer writes first count."""
    noted = dict(payload or ())
    for name in ("given", "found"):
        if name in noted:
            noted[name] = [SeenNode(snapshot) for snapshot in noted[name]]
    if "prompt" in noted:
        noted["prompt"] = [message_of(*part) for part in noted["prompt"]]
    if step.texts is not None:
        noted.pop("texts", None)
    if noted.get("span", step) is None:
        del noted["span"]
    vars(step).update(noted)


def _as_node(entry: tuple[Document, float | None]) -> SeenNode:
    document, score = entry
    return SeenNode((hash(document.text), score, document.id, document.text, document.metadata, None))


def _awaited(root: Step) -> Stream | None:
    """The stream that the request ends with."""
    answer = root.answer
    return answer if isinstance(answer, Stream) and root.ended_ns and root.error is None else None


def _handed_on(child: Step, step: Step) -> bool:
    if isinstance(step.answer, Stream):
        return child.answer is step.answer and child.role != "chat writer"
    return child.result is not None and child.result == step.result


# The user's words

_OBSERVATION = "Observation:"  # so a reasoning agent tells its model, as the user, what a tool gave


def asked_in(prompt: Sequence[PayloadMessage]) -> str | None:
    """What the user said last in a conversation that went on: a resumed agent does not get it again."""
    spoke = [place for place, part in enumerate(prompt) if part.role == "ai"]
    before = prompt[: spoke[-1]] if spoke else ()
    told = [part.text for part in before if part.role == "human" and not part.text.startswith(_OBSERVATION)]
    return told[-1] if told else None


def models_in(request: Request) -> list[Step]:
    """The calls of models; a method that works through another one of the same model is not counted twice."""
    calls = [step for step in request.steps if step.role == "model"]
    calls = [step for step in calls if not any(inner.role == "model" for inner in step.children)]
    following = zip_longest(calls, calls[1:])
    return [step for step, after in following if not _only_hands_on(step, after)]


def _only_hands_on(step: Step, after: Step | None) -> bool:
    """Whether an asynchronous stream only reads the synchronous one, as the framework's defaults do."""
    return step.streams and after is not None and _method(step) == f"a{_method(after)}" and step.name == after.name


def _method(step: Step) -> str:
    return step.span_id[len(step.name) + 1 : -UUID_LENGTH]


# Runs that were interrupted


def join_beginning(request: Request) -> None:
    """Put what a run did before it was interrupted in front of what it did after it.

    The saved context of a run does not name it. Its beginning is recognised by texts that appear again in a prompt or in the
    answer: its question, a node that it found, or words that it wrote.
    """
    earlier = request.log.earlier
    told = _told(request) if earlier else ""
    rated = [(_signs(each, told), each) for each in map(request_of, earlier) if each.root.name == request.root.name]
    most = max((signs for signs, _ in rated), default=0)
    if most == 0:
        return
    beginning = [each for signs, each in rated if signs == most][-1]
    join_beginning(beginning)
    request.root.children[:0] = beginning.root.children
    request.root.asked = request.root.asked or beginning.root.asked


def _told(request: Request) -> str:
    prompts = [part.text for step in request.steps for part in step.prompt]
    return "\n".join([*prompts, request.root.answer_text() or ""])


def _signs(request: Request, told: str) -> int:
    found = (node.text for step in request.steps for node in step.found or ())
    nodes = any(text.strip() and text in told for text in islice(found, _MAX_NODES))
    question = any(text.strip() and text in told for _, text in request.root.asked)
    said = any((text := step.answer_text()) and " " in text and text in told for step in request.steps)
    return nodes + question + said


# Parts of the record


def _status_of(request: Request) -> tuple[AnswerStatus, str | None]:
    error = request.root.error
    aborted = request.aborted
    if request.awaited is not None:
        error = error or request.awaited.error
        aborted = aborted or request.awaited.aborted or not request.awaited.over
    if aborted:
        return "interrupted" if request.is_interrupted else "aborted", None
    return ("complete", None) if error is None else ("error", error)


def _noted(request: Request) -> NotedError | ErrorReport | None:
    return request.root.noted or (None if request.awaited is None else request.awaited.noted)


def _swallowed(request: Request) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in request.problems if name not in _NO_ERRORS))


def _question(request: Request) -> str | None:
    searched = [text for step in request.steps if step is not request.root for _, text in step.asked]
    given = dict(request.root.asked)
    asked = given[""] if "" in given else question_in(given, searched)
    if asked is None and request.root.is_resumed:
        asked = next((text for step in request.steps if (text := asked_in(step.prompt)) is not None), None)
    return asked if asked is not None else next(iter(searched), None)


def _answer_among(root: Step) -> str | Stream | None:
    """Of a result with several parts, the last and longest one that a model said; else all of it.

    A run that returns nothing gave its answer as events: it is what its last model streamed.
    """
    fields = root.fields if root.is_run else ()
    if root.is_run and not root.answer and not fields:
        spoken = [step.answer_text() for step in speakers_in(root) if step.streams]
        return next(filter(None, reversed(spoken)), root.answer_text())
    for speaker in reversed(list(root.walk()) if fields else []):
        said = speaker.answer_text() if speaker is not root and speaker.role in SPEAKING else None
        parts = [text for text in fields if said and text.strip() and text.strip() in said]
        if parts:
            return max(parts, key=len)
    return root.answer


def _response(request: Request) -> str | None:
    if not request.log.grouped:
        return _without_thoughts(request.root.answer_text())
    answers = [step.answer_text() for step in request.root.children if step.role in SPEAKING]
    return _without_thoughts(next((answer for answer in reversed(answers) if answer is not None), None))


def _without_thoughts(answer: str | None) -> str | None:
    return without_thoughts(answer) or None if answer else answer


def _own(tags: Mapping[str, Any]) -> dict[str, object]:
    """What the program tagged its spans with, not what the framework adds for its own tracing."""
    own = plain_entries(tags)
    return {key: value for key, value in own.items() if not key.startswith("llamaindex.")}
