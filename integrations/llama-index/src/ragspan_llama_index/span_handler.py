"""What the framework's dispatcher calls at every span and every event."""

from __future__ import annotations

from typing import Any

from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_instrumentation.span import BaseSpan
from llama_index_instrumentation.span_handlers import BaseSpanHandler

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
