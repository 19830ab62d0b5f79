"""Captures answers of plain Python code, and documents that callbacks cannot see."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from ragspan.config import is_enabled
from ragspan.exceptions import ConfigurationError
from ragspan.field_names import identifier
from ragspan.messages import ErrorReport, Message, ToolRequest, is_abandonment, note_error
from ragspan.records import (
    MAX_CONTEXTS,
    AnswerStatus,
    Capture,
    Generation,
    RagRecord,
    RecordSink,
    RetrievedContext,
    as_background,
    as_contexts,
)
from ragspan.safe_copy import (
    MAX_ENTRIES,
    class_name,
    dict_in,
    fields_of,
    given_items,
    items_of,
    kept_entries,
    text_keyed,
    text_of,
    texts_among,
)
from ragspan.telemetry.otel_context import current_anchor
from ragspan.throttled_log import ThrottledLog

_log = ThrottledLog()

ContextRecorder = Callable[[Sequence[RetrievedContext]], bool]
"""Notes contexts for the request that is running; False when none of its own is."""

_recorders: list[ContextRecorder] = []
_Part = TypeVar("_Part", bound=Capture)
_T = TypeVar("_T")


class Answer:
    """An answer in the making; what is not set is filled in from what handlers saw inside the block."""

    def __init__(self, question: str | None) -> None:
        self.question = question
        """The user's own words."""
        self.contexts: Iterable[Any] | None = None
        """The contexts that go into the prompt, in order: strings, `RetrievedContext`s, documents of a framework,
        or dictionaries such as `{"text": ..., "id": ...}`."""
        self.response: str | None = None
        """What the caller gets."""
        self.background: Iterable[Any] = ()
        """Other evidence that goes into the prompt, such as results of tools: strings, or `Background`s with a kind."""
        self.prompt: str | Iterable[Any] | None = None
        """What the model was given: a text, or messages such as `{"role": "user", "content": ...}`. With
        `unknown_contexts="prompt"` answers without contexts are scored by it."""
        self._recorded: list[RetrievedContext] | None = None  # by `record_contexts`
        self._parts: dict[int, tuple[object, Capture, Callable[[Any], object]]] = {}
        self.closed = False
        """The block has been left."""

    def part(self, owner: object, make: Callable[[], _Part], end: Callable[[_Part], object]) -> _Part:
        """What an owner sees of this answer: a capture whose record fills in what the program does not set.

        It is made at first need, and ended with the block.
        """
        entry = self._parts.get(id(owner))
        if entry is None:  # `setdefault`: all threads have to get the same part
            entry = self._parts.setdefault(id(owner), (owner, make(), end))
        return cast("_Part", entry[1])

    def _close(self, record: RagRecord, noted: ErrorReport | None) -> _AnswerCapture:
        self.closed = True
        for name in vars(self).keys() - _PARTS:
            _log.report(f"no {name}", "an answer has no %r: set its question, contexts and response", name)
        contexts = None if self.contexts is None else _readable(self.contexts)
        generations = _guarded(_prompted, self.prompt, record) or ()
        background = given_items(self.background, MAX_CONTEXTS)
        if self._recorded:
            contexts = [*(contexts or ()), *self._recorded]
        parts = []
        for _, part, end in list(self._parts.values()):  # another thread may still add one
            if _guarded(lambda part, end: (end(part),), part, end) is not None:
                parts.append(part)
        return _AnswerCapture(
            set_by_hand=replace(
                record,
                question=self.question,
                contexts=None if contexts is None else tuple(contexts),
                response=self.response,
                background=_guarded(as_background, self.background if background is None else background) or (),
                generations=generations,
                prompts_seen=bool(generations),
            ),
            noted=noted,
            recorded_none=self._recorded == [],
            parts=tuple(parts),
        )


_PARTS = vars(Answer(None)).keys()


@dataclass(frozen=True, kw_only=True, slots=True)
class _AnswerCapture:
    set_by_hand: RagRecord
    noted: ErrorReport | None
    recorded_none: bool
    """The program said that no context reaches the prompt."""
    parts: tuple[Capture, ...]

    @property
    def size_hint(self) -> int:
        return self.set_by_hand.size_hint + sum(part.size_hint for part in self.parts)

    def to_record(self) -> RagRecord:
        own = self.set_by_hand
        seen = [record for record in (part.to_record() for part in self.parts) if record is not None]
        contexts = [context for record in seen for context in record.contexts or ()]
        observed = self.recorded_none or any(record.contexts is not None for record in seen)
        return replace(
            own,
            question=_first(own.question, *(record.question for record in seen)),
            contexts=own.contexts if own.contexts is not None else tuple(contexts) if observed else None,
            response=_first(own.response, *(record.response for record in reversed(seen))),
            is_agent=any(record.is_agent for record in seen),
            error=self.noted,
            background=(*own.background, *(one for record in seen for one in record.background)),
            background_truncated=any(record.background_truncated for record in (own, *seen)),
            contexts_unknown=_first(*(record.contexts_unknown for record in seen)),
            prompts_seen=own.prompts_seen or (bool(seen) and all(record.prompts_seen for record in seen)),
            from_model=None if own.response is not None else _first(*(record.from_model for record in reversed(seen))),
            **_steps_of([own, *seen]),
        )


def _steps_of(records: Sequence[RagRecord]) -> dict[str, Any]:
    """The steps of all records. A step names the tool around it by its index among all tools."""
    found: dict[str, list[Any]] = {"retrievals": [], "generations": [], "rerankings": [], "tool_calls": []}
    for record in records:
        before = len(found["tool_calls"])
        for kind, steps in found.items():
            for step in getattr(record, kind):
                steps.append(step if step.within is None else replace(step, within=step.within + before))
    return {kind: tuple(steps) for kind, steps in found.items()}


def _prompted(prompt: str | Iterable[Any] | None, record: RagRecord) -> tuple[Generation, ...]:
    """The call of a model with a prompt that the program shows; it takes as long as the answer."""
    if prompt is None:
        return ()
    text = text_of(prompt)
    given = given_items(prompt, MAX_ENTRIES) if text is None else [Message(role="user", text=text)]
    messages = [_message(each) for each in given or ()]
    if given is None or None in messages:
        raise ConfigurationError("a prompt is a text, or a list of messages with a role and a content")
    shown = tuple(message for message in messages if message is not None)
    return (
        Generation(model=None, provider=None, started_ns=record.started_ns, ended_ns=record.ended_ns, prompt=shown),
    )


def _message(given: Any) -> Message | None:
    """A message of a prompt; None if it has no role."""
    if type(given) is Message:
        return given
    fields = text_keyed(dict_in(given) or fields_of(given))
    role, content = text_of(fields.get("role")), fields.get("content")
    parts = [{"text": content}] if (listed := items_of(content)) is None else listed
    texts = [text_of((dict_in(part) or fields_of(part)).get("text")) for part in parts]
    requests = tuple(ToolRequest(name="") for _ in items_of(fields.get("tool_calls")) or ())
    shown = "\n".join(text for text in texts if text is not None)
    return None if role is None else Message(role=_ROLES.get(role, role), text=shown, tool_requests=requests)


_ROLES = {"developer": "system", "function": "tool", "human": "user", "ai": "assistant"}
_answer: ContextVar[Answer | None] = ContextVar("ragspan_answer", default=None)


@contextlib.contextmanager
def capture(
    question: str | None = None,
    *,
    sink: RecordSink | None = None,
    name: str = "answer",
    session_id: str | None = None,
    user_id: str | None = None,
    tags: Iterable[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> Iterator[Answer]:
    """Capture one answer of plain Python code.

        with ragspan.capture(question=question) as answer:
            answer.contexts = contexts
            answer.response = my_model(question, contexts)

    Works around `await` as well. Chains with a handler that run inside belong to this answer and make no record of
    their own: what they show fills in what is not set by hand. An exception passes through and makes the answer an
    error, a cancellation an aborted one. If ragspan cannot capture the answer, because of a wrong setting say, it logs why, and
    the block runs all the same.

    Args:
        question: the user's own words; may also be set on the answer.
        sink: gets the capture; `ragspan.default_engine()`, or what `RAGSPAN_SINK` names, when none is given.
        name: what answers; the span is called `invoke_workflow <name>`.
        session_id: the conversation that the answer belongs to.
        user_id: who asked.
        tags: short labels of the record.
        metadata: plain data of the record.
    """
    about = _guarded(
        lambda: RagRecord(
            question=None,
            contexts=None,
            response=None,
            name=text_of(name) or "answer",
            parent=current_anchor(),
            session_id=identifier((session_id,)),
            user_id=identifier((user_id,)),
            tags=texts_among(given_items(tags, MAX_ENTRIES) or ()),
            metadata=kept_entries(dict_in(metadata), nested=True),
        )
    )
    if sink is None:
        from ragspan.defaults import default_sink

        sink = _guarded(default_sink)
    answer = Answer(question)
    token = _answer.set(answer)
    status: AnswerStatus = "complete"
    error_type: str | None = None
    noted: ErrorReport | None = None
    try:
        yield answer
    except BaseException as error:
        if is_abandonment(error):
            status = "aborted"
        else:
            status, error_type, noted = "error", class_name(type(error)), note_error(error)
        raise
    finally:
        try:
            _answer.reset(token)
        except ValueError:  # a block inside a generator may be left in another context than it was entered in
            _answer.set(None if _answer.get() is answer else _answer.get())
        if about is not None and sink is not None:
            ended = replace(about, status=status, error_type=error_type, ended_ns=time.time_ns())
            _guarded(lambda: sink.submit(answer._close(ended, noted)))  # noqa: SLF001


def record_contexts(contexts: Iterable[Any]) -> None:
    """Say that these contexts reach the prompt of the answer that is being made.

    For documents that no callback shows: a store searched inside a function, a prompt built by hand. Works inside a
    `ragspan.capture` block and inside any chain, engine or agent with a ragspan handler; elsewhere it only logs a warning.

    Args:
        contexts: strings, `RetrievedContext`s, documents of a framework, or dictionaries with a text, in prompt order.
    """
    readable = _readable(contexts)
    if readable is None or any(recorder(readable) for recorder in _recorders):
        return
    answer = enclosing_answer()
    if answer is not None:
        answer._recorded = [*(answer._recorded or ()), *readable]  # noqa: SLF001
    elif _guarded(is_enabled):
        _log.report(
            "outside",
            "record_contexts was called where no answer is captured, so it has no effect: call it inside a chain, engine or "
            "agent that ragspan handles, or inside `with ragspan.capture(...)`",
        )


def enclosing_answer() -> Answer | None:
    """The `ragspan.capture` block that the caller runs in; for integrations."""
    answer = _answer.get()
    return None if answer is None or answer.closed else answer


def add_context_recorder(recorder: ContextRecorder) -> None:
    """Have `record_contexts` ask an integration first."""
    if recorder not in _recorders:
        _recorders.append(recorder)


def _readable(given: Any) -> list[RetrievedContext] | None:
    """These objects as contexts, without those that cannot be read; None if not one of them can."""
    items = _guarded(given_items, given, MAX_CONTEXTS)
    if items is None:
        _guarded(as_contexts, given)  # which says why
        return None
    found = [context for item in items for context in _guarded(as_contexts, [item]) or ()]
    return found if found or not items else None


def _guarded(call: Callable[..., _T], *args: Any) -> _T | None:
    """What the call returns; None if it raises, for this runs inside the user's request, which must not fail by it.

    Only ragspan's own words are logged of the error: those of a document's class may quote the document.
    """
    try:
        return call(*args)
    except Exception as error:  # noqa: BLE001 - documents, sinks and settings are the user's
        what = str(error) if type(error) is ConfigurationError else class_name(type(error))
        _log.report(what, "an answer or a part of it is not captured: %s", what)
        return None


def _first(*values: _T | None) -> _T | None:
    return next((value for value in values if value is not None), None)
