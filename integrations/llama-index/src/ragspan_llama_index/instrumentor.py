"""Attaches ragspan to every LlamaIndex call of the process: one span handler for each sink.

Loaded wherever the package is installed: of the framework it imports only the small part that dispatches spans. Attaching and
detaching take a lock; spans do not.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_instrumentation.span import BaseSpan, active_span_id
from llama_index_instrumentation.span_handlers import BaseSpanHandler
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]  # the package is not typed

from ragspan.capturing import OuterRun, add_context_recorder, add_request_finder
from ragspan.config import is_enabled
from ragspan.installed import requirements_of_extra
from ragspan.process import set_up_or_off
from ragspan.records import RecordSink, RetrievedContext
from ragspan_llama_index.recorder import SpanRecorder


class RagspanLlamaIndexInstrumentor(BaseInstrumentor):  # type: ignore[misc]  # as above
    """Captures every LlamaIndex request of the process: `RagspanLlamaIndexInstrumentor().instrument()`.

    `opentelemetry-instrument python app.py` finds it by its entry point. `instrument(sink=...)` takes a sink, else the
    answers go to `ragspan.default_engine()`, or to what `RAGSPAN_SINK` names. It raises nothing: where ragspan cannot be set
    up, one line of the log says why, and it is off. A handler of the same sink makes no second record.
    """

    framework = "llama_index_instrumentation"

    def instrumentation_dependencies(self) -> Collection[str]:
        """What `opentelemetry-instrument` checks; read from the distribution, so that it cannot differ from it."""
        return requirements_of_extra("ragspan-llama-index", "instruments")

    def _instrument(self, **kwargs: Any) -> None:
        with set_up_or_off():
            attach(self, kwargs.get("sink"))

    def _uninstrument(self, **_: Any) -> None:
        detach(self)


class RagspanSpanHandler(BaseSpanHandler[BaseSpan]):
    """Hands every span to a recorder. It keeps none itself: the base class would for ever keep those that never close."""

    def __init__(self, recorder: SpanRecorder) -> None:
        super().__init__()
        # In the instance, where they hide the base class's methods: nothing then stands between dispatcher and recorder.
        vars(self).update(span_enter=recorder.span_enter, span_exit=recorder.span_exit, span_drop=recorder.span_drop)

    def new_span(self, *_: Any, **__: Any) -> None:
        """The base class wants it, and those below; nothing calls them here."""
        return

    prepare_to_exit_span = prepare_to_drop_span = new_span


class RagspanEventHandler(BaseEventHandler):
    """Hands every event to a recorder: the words that a model streams come past every span."""

    def __init__(self, recorder: SpanRecorder) -> None:
        super().__init__()
        vars(self).update(handle=recorder.event)  # as above

    def handle(self, *_: Any, **__: Any) -> None:
        """The base class wants it; nothing calls it here."""


class _Attachment(NamedTuple):
    """The handlers of a sink, and who wants them there."""

    recorder: SpanRecorder
    handler: RagspanSpanHandler
    listener: RagspanEventHandler
    owners: list[object]


_attachments: list[_Attachment] = []
_lock = threading.Lock()


def attach(owner: object, sink: RecordSink | None) -> SpanRecorder | None:
    """Have this sink, or the default one, get every request from now on. Owners of the same sink share its handlers.

    None where ragspan is switched off.
    """
    if not is_enabled():
        return None
    from ragspan.defaults import sink_or_default

    sink = sink_or_default(sink)
    with _lock:
        attachment = next((each for each in _attachments if each.recorder.sink is sink), None)
        if attachment is None:
            recorder = SpanRecorder(sink)
            attachment = _Attachment(recorder, RagspanSpanHandler(recorder), RagspanEventHandler(recorder), [])
            _attachments.append(attachment)
            get_dispatcher().add_span_handler(attachment.handler)
            get_dispatcher().add_event_handler(attachment.listener)
        attachment.owners[:] = [*(each for each in attachment.owners if each is not owner), owner]
    add_context_recorder(_record_contexts)
    add_request_finder(_request_around)
    return attachment.recorder


def detach(owner: object) -> None:
    """This owner no longer wants its sink to get anything; without owners, the sink's handlers go."""
    with _lock:
        for attachment in [*_attachments]:
            attachment.owners[:] = [one for one in attachment.owners if one is not owner]
            if not attachment.owners:
                _attachments.remove(attachment)
                root = get_dispatcher()
                # New lists: threads that are just telling the handlers of the old ones must not miss any.
                root.span_handlers = [each for each in root.span_handlers if each is not attachment.handler]
                root.event_handlers = [each for each in root.event_handlers if each is not attachment.listener]
                attachment.recorder.close()


def _record_contexts(contexts: Sequence[RetrievedContext]) -> bool:
    """Note contexts for the span that the caller runs in; False outside of any that is followed."""
    span_id = active_span_id.get()
    taken = [each.recorder.record_contexts(span_id, contexts) for each in _attachments if span_id is not None]
    return any(taken)


def _request_around(sink: RecordSink) -> OuterRun | None:
    """The step that the caller is in, of a request for this sink."""
    span_id = active_span_id.get()
    for each in _attachments:
        if each.recorder.sink is sink:
            return None if span_id is None else each.recorder.around(span_id)
    return None
