"""Makes the record of a request from what was noted while it ran; runs in the worker."""

from __future__ import annotations

from itertools import zip_longest

from ragspan.provider_replies import facts_of
from ragspan.records import AnswerStatus, Generation, RagRecord, Retrieval, plain_entries
from ragspan_llama_index.asking import asked_in, question_in
from ragspan_llama_index.contexts import Provenance
from ragspan_llama_index.passages import as_context
from ragspan_llama_index.resuming import join_beginning
from ragspan_llama_index.roles import Role, method_of
from ragspan_llama_index.steps import Request, Step
from ragspan_llama_index.streams import Stream
from ragspan_llama_index.writers import speakers_in

_MAX_CHILDREN = 100
_PROVIDERS = "llama_index.llms."
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
        if root.is_run and status == "complete" and not (response or _models(request)):
            return None  # it did other work: read documents in, say
        provenance = Provenance(root, question)
        return RagRecord(
            question=question,
            contexts=provenance.contexts(),
            response=response,
            status=status,
            error_type=error_type,
            swallowed_errors=_swallowed(request) if status == "complete" else (),
            evidence=provenance.evidence(),
            framework="llama_index",
            name=root.name,
            started_ns=request.started_ns,
            ended_ns=request.ended_ns,
            parent=request.anchor,
            retrievals=tuple(_retrieval(step, request) for step in _searches(request)[:_MAX_CHILDREN]),
            generations=tuple(_generation(step, request) for step in _models(request)[:_MAX_CHILDREN]),
            session_id=_first_tag(request, _SESSION_KEYS),
            user_id=_first_tag(request, _USER_KEYS),
            metadata=_own_tags(request),
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


def _searches(request: Request) -> list[Step]:
    return [step for step in request.steps if step.role is Role.SEARCH]


def _retrieval(step: Step, request: Request) -> Retrieval:
    found = step.found or ()
    return Retrieval(
        name=step.name,
        query=question_in(step.asked, ()),
        started_ns=step.started_ns,
        ended_ns=step.ended_ns or request.ended_ns,
        contexts=tuple(as_context(node, node.text, rank=rank) for rank, node in enumerate(found)),
        error_type=step.error,
        span=step.span,
    )


def _models(request: Request) -> list[Step]:
    """The calls of models; a method that works through another one of the same model is not counted twice."""
    calls = [step for step in request.steps if step.role is Role.MODEL]
    calls = [step for step in calls if not any(inner.role is Role.MODEL for inner in step.children)]
    following = zip_longest(calls, calls[1:])
    return [step for step, after in following if not _only_hands_on(step, after)]


def _only_hands_on(step: Step, after: Step | None) -> bool:
    """Whether an asynchronous stream is but the synchronous one, begun when it is read; so do the framework's defaults."""
    return step.streams and after is not None and _method(step) == f"a{_method(after)}" and step.name == after.name


def _method(step: Step) -> str:
    return method_of(step.span_id, step.name)


def _generation(step: Step, request: Request) -> Generation:
    facts = facts_of(step.reply)
    stream = request.awaited if step.streams else None
    return Generation(
        model=facts.model or step.model or step.name,
        provider=_provider(step.module),
        started_ns=step.started_ns,
        ended_ns=request.ended_ns if step.streams else step.ended_ns or request.ended_ns,
        first_token_ns=None if stream is None else stream.first_token_ns,
        input_tokens=facts.input_tokens,
        output_tokens=facts.output_tokens,
        finish_reason=facts.finish_reason,
        error_type=step.error,
    )


def _provider(module: str) -> str | None:
    """Each provider has a package of its own, below the same one."""
    name = module.removeprefix(_PROVIDERS)
    return None if name == module else name.partition(".")[0]


def _first_tag(request: Request, keys: tuple[str, ...]) -> str | None:
    found = (request.tags.get(key) for key in keys)
    return next((str(value) for value in found if isinstance(value, (str, int)) and value != ""), None)


def _own_tags(request: Request) -> dict[str, object]:
    """What the program tagged its spans with, not what the framework adds for its own tracing."""
    own = plain_entries(request.tags)
    return {key: value for key, value in own.items() if not key.startswith("llamaindex.")}
