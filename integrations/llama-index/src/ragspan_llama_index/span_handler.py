"""What the framework's dispatcher calls at every span.

The dispatcher swallows whatever a handler raises, without a word. So each method is a boundary of its own: what goes wrong
inside is logged and counted, and costs a score, never an answer.
"""

from __future__ import annotations

import inspect
from functools import cached_property
from typing import Any

from llama_index_instrumentation.span import BaseSpan
from llama_index_instrumentation.span_handlers import BaseSpanHandler
from pydantic import PrivateAttr

from ragspan_llama_index.tracker import RequestTracker


class RagspanSpanHandler(BaseSpanHandler[BaseSpan]):
    """Tells a tracker of every span. It keeps none itself: the base class would for ever keep those that never close."""

    _tracker: RequestTracker = PrivateAttr()

    def __init__(self, tracker: RequestTracker) -> None:
        super().__init__()
        self._tracker = tracker

    @cached_property
    def tracker(self) -> RequestTracker:
        return self._tracker  # a private attribute costs a microsecond at every look

    @classmethod
    def class_name(cls) -> str:
        return "RagspanSpanHandler"

    def span_enter(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any | None = None,
        parent_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        try:
            self.tracker.enter(id_, bound_args.arguments, instance, parent_id, tags)
        except Exception as problem:  # noqa: BLE001
            self.tracker.report(problem)

    def span_exit(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,  # noqa: ARG002  the framework's signature
        instance: Any | None = None,  # noqa: ARG002  as above
        result: Any | None = None,
        **_: Any,
    ) -> None:
        try:
            self.tracker.leave(id_, result)
        except Exception as problem:  # noqa: BLE001
            self.tracker.report(problem)

    def span_drop(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,  # noqa: ARG002  the framework's signature
        instance: Any | None = None,  # noqa: ARG002  as above
        err: BaseException | None = None,
        **_: Any,
    ) -> None:
        try:
            self.tracker.drop(id_, err)
        except Exception as problem:  # noqa: BLE001
            self.tracker.report(problem)

    # The base class wants these; nothing calls them here.

    def new_span(self, *_: Any, **__: Any) -> None:
        return None

    def prepare_to_exit_span(self, *_: Any, **__: Any) -> None:
        return None

    def prepare_to_drop_span(self, *_: Any, **__: Any) -> None:
        return None
