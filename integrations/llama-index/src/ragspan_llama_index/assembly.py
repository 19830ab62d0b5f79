"""Makes the record of a request from what was noted while it ran; runs in the worker."""

from __future__ import annotations

from ragspan.records import AnswerStatus, RagRecord, plain_entries
from ragspan.step_texts import NotedError
from ragspan_llama_index.asking import asked_in, question_in
from ragspan_llama_index.contexts import Provenance
from ragspan_llama_index.resuming import join_beginning
from ragspan_llama_index.roles import Role
from ragspan_llama_index.step_records import StepRecords, models_in, report_of
from ragspan_llama_index.steps import Request, Step
from ragspan_llama_index.streams import Stream
from ragspan_llama_index.writers import speakers_in

_SESSION_KEYS = ("session_id", "session.id", "thread_id", "conversation_id")
_USER_KEYS = ("user_id", "user.id")

# Errors that steer a workflow; nobody hides them from anybody.
_NO_ERRORS = frozenset({"CancelledError", "GeneratorExit", "StopIteration", "StopAsyncIteration", "WaitingForEvent"})


class RequestCapture:
    """A finished request; becomes a record in the worker."""

    __slots__ = ("_request", "size_hint")

    def __init__(self, request: Request, *, size_hint: int) -> None:
        self._request = request
        self.size_hint = size_hint

    def to_record(self) -> RagRecord | None:
        request = self._request
        root = request.root
        join_beginning(request)
        root.answer = _answer_among(root)
        status, error_type = _status_of(request)
        question, response = _question(request), _response(request)
        if root.is_run and status == "complete" and not (response or models_in(request)):
            return None  # it did other work: read documents in, say
        provenance = Provenance(root, question)
        steps = StepRecords(request)
        return RagRecord(
            question=question,
            contexts=provenance.contexts(),
            response=response,
            status=status,
            error_type=error_type,
            swallowed_errors=_swallowed(request) if status == "complete" else (),
            evidence=provenance.evidence(),
            framework="llama_index",
            name=steps.name(),
            started_ns=request.started_ns,
            ended_ns=request.ended_ns,
            parent=request.anchor,
            retrievals=steps.retrievals(),
            generations=steps.generations(),
            session_id=_first_tag(request, _SESSION_KEYS),
            user_id=_first_tag(request, _USER_KEYS),
            metadata=_own_tags(request),
            tool_calls=steps.tool_calls(),
            rerankings=steps.rerankings(),
            is_agent=steps.is_agent(),
            error=report_of(_noted(request)) if status == "error" else None,
        )


def _status_of(request: Request) -> tuple[AnswerStatus, str | None]:
    error = request.error
    aborted = request.aborted
    if request.awaited is not None:
        error = error or request.awaited.error
        aborted = aborted or request.awaited.aborted or not request.awaited.over
    if aborted:
        return "interrupted" if request.is_interrupted else "aborted", None
    return ("complete", None) if error is None else ("error", error)


def _noted(request: Request) -> NotedError | None:
    return request.noted if request.awaited is None else request.noted or request.awaited.noted


def _swallowed(request: Request) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in request.problems if name not in _NO_ERRORS))


def _question(request: Request) -> str | None:
    searched = [text for step in request.steps if step is not request.root for _, text in step.asked]
    asked = question_in(request.root.asked, searched)
    if asked is None and request.is_resumed:
        asked = next((text for step in request.steps if (text := asked_in(step.prompt)) is not None), None)
    return asked if asked is not None else next(iter(searched), None)


def _answer_among(root: Step) -> str | Stream | None:
    """Of a result with several parts, the one that a model said, the last and longest of them; else all of it.

    A run that returns nothing told its answer on the way, as events: it is what its last model streamed.
    """
    if root.is_run and not root.answer and not root.fields:
        spoken = [step.answer_text() for step in speakers_in(root) if step.streams]
        return next(filter(None, reversed(spoken)), root.answer_text())
    for speaker in reversed(list(root.walk()) if root.fields else []):
        said = speaker.answer_text() if speaker is not root and speaker.role in _SPEAKING else None
        parts = [text for text in root.fields if said and text.strip() and text.strip() in said]
        if parts:
            return max(parts, key=len)
    return root.answer


def _response(request: Request) -> str | None:
    if not request.grouped:
        return request.root.answer_text()
    answers = [step.answer_text() for step in request.root.children if step.role in _SPEAKING]
    return next((answer for answer in reversed(answers) if answer is not None), None)


_SPEAKING = frozenset({Role.CALL, Role.SYNTHESIS, Role.MODEL})


# Parts of the record


def _first_tag(request: Request, keys: tuple[str, ...]) -> str | None:
    found = (request.tags.get(key) for key in keys)
    return next((str(value) for value in found if isinstance(value, (str, int)) and value != ""), None)


def _own_tags(request: Request) -> dict[str, object]:
    """What the program tagged its spans with, not what the framework adds for its own tracing."""
    own = plain_entries(request.tags)
    return {key: value for key, value in own.items() if not key.startswith("llamaindex.")}
