"""Puts span handlers on the framework's root dispatcher and takes them off, one for each sink.

Attaching and detaching take a lock; spans do not.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_instrumentation.span import BaseSpan, active_span_id
from llama_index_instrumentation.span_handlers import BaseSpanHandler

from ragspan.capturing import add_context_recorder
from ragspan.records import RecordSink, RetrievedContext
from ragspan_llama_index.recorder import SpanRecorder


class RagspanSpanHandler(BaseSpanHandler[BaseSpan]):
    """Has a tracker told of every span. It keeps none itself: the base class would for ever keep those that never close."""

    def __init__(self, tracker: SpanRecorder) -> None:
        super().__init__()
        # In the instance, where they hide the base class's methods: nothing then stands between dispatcher and tracker.
        vars(self).update(span_enter=tracker.span_enter, span_exit=tracker.span_exit, span_drop=tracker.span_drop)

    @classmethod
    def class_name(cls) -> str:
        return "RagspanSpanHandler"

    # The base class wants these; nothing calls them here.

    def new_span(self, *_: Any, **__: Any) -> None:
        return None

    def prepare_to_exit_span(self, *_: Any, **__: Any) -> None:
        return None

    def prepare_to_drop_span(self, *_: Any, **__: Any) -> None:
        return None


class RagspanEventHandler(BaseEventHandler):
    """Has a tracker told of every event: the words that a model streams come past every span."""

    def __init__(self, tracker: SpanRecorder) -> None:
        super().__init__()
        vars(self).update(handle=tracker.event)  # as above

    @classmethod
    def class_name(cls) -> str:
        return "RagspanEventHandler"

    def handle(self, *_: Any, **__: Any) -> None:  # the base class wants it; nothing calls it here
        pass


class _Attachment:
    """The one span handler of a sink, and who wants it there."""

    def __init__(self, sink: RecordSink) -> None:
        self.tracker = SpanRecorder(sink, on_request=self._go_last)
        self.handler = RagspanSpanHandler(self.tracker)
        self.listener = RagspanEventHandler(self.tracker)
        self.owners: list[object] = []
        self._root = get_dispatcher()

    def _go_last(self) -> None:
        """Let handlers that were added later be told first: they look for the framework's own streams, which we replace."""
        root = self._root
        handlers = root.span_handlers
        if handlers[-1] is self.handler or len(_attachments) > 1:
            return
        if _lock.acquire(blocking=False):  # else somebody is at it: there will be another request
            try:
                if self.handler in handlers:
                    root.span_handlers = [each for each in handlers if each is not self.handler] + [self.handler]
            finally:
                _lock.release()


_attachments: list[_Attachment] = []
_lock = threading.Lock()


def attach(owner: object, sink: RecordSink) -> SpanRecorder:
    """Have this sink get every request from now on. Owners of the same sink share one span handler."""
    with _lock:
        attachment = next((each for each in _attachments if each.tracker.sink is sink), None)
        if attachment is None:
            attachment = _Attachment(sink)
            _attachments.append(attachment)
            get_dispatcher().add_span_handler(attachment.handler)
            get_dispatcher().add_event_handler(attachment.listener)
        if not any(each is owner for each in attachment.owners):
            attachment.owners.append(owner)
    add_context_recorder(_record_contexts)
    return attachment.tracker


def detach(owner: object) -> None:
    """This owner no longer wants its sink to get anything; without owners, the span handler goes."""
    with _lock:
        for attachment in [each for each in _attachments if any(one is owner for one in each.owners)]:
            attachment.owners[:] = [one for one in attachment.owners if one is not owner]
            if attachment.owners:
                continue
            _attachments.remove(attachment)
            root = get_dispatcher()
            # A new list: threads that are just telling the handlers of the old one must not miss any.
            root.span_handlers = [each for each in root.span_handlers if each is not attachment.handler]
            root.event_handlers = [each for each in root.event_handlers if each is not attachment.listener]
            attachment.tracker.close()


def _record_contexts(contexts: Sequence[RetrievedContext]) -> bool:
    """Note contexts for the span that the caller runs in; False outside of any that is followed."""
    span_id = active_span_id.get()
    if span_id is None:
        return False
    taken = [attachment.tracker.record_contexts(span_id, contexts) for attachment in _attachments]
    return any(taken)
