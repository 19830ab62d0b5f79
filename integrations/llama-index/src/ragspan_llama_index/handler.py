"""The handler that users attach."""

from __future__ import annotations

from typing import Any

from llama_index.core.callbacks.base_handler import BaseCallbackHandler

from ragspan.config import is_enabled
from ragspan.records import RecordSink
from ragspan_llama_index.attaching import attach, detach
from ragspan_llama_index.tracker import RequestTracker


class RagspanCallbackHandler(BaseCallbackHandler):
    """Captures every request of the process's query engines, chat engines, agents and workflows.

    `Settings.callback_manager = CallbackManager([RagspanCallbackHandler()])` is the familiar way, and constructing it is
    enough: it listens to the framework's spans, of engines that were built before, too. It takes notes only: the record is
    made, and scored, in the sink's worker. Handlers of the same sink make one record of a request.

    Args:
        sink: gets a capture of each request; `ragspan.default_engine()`, or what `RAGSPAN_SINK` names, when none is given.

    Raises:
        ragspan.ConfigurationError: no sink is given and a `RAGSPAN_*` variable has a wrong value.
    """

    def __init__(self, sink: RecordSink | None = None) -> None:
        super().__init__(event_starts_to_ignore=[], event_ends_to_ignore=[])
        self._tracker: RequestTracker | None = None
        if not is_enabled():
            return
        if sink is None:
            from ragspan.defaults import default_sink

            sink = default_sink()
        self._tracker = attach(self, sink)

    @property
    def open_spans(self) -> int:
        """How many spans are still followed; 0 when no request is in flight."""
        return 0 if self._tracker is None else self._tracker.open_spans

    def detach(self) -> None:
        """Stop capturing. Streams that are open go on and are not recorded; may be called again."""
        detach(self)

    # Callback managers are copied together with the engines that hold them.

    def __copy__(self) -> RagspanCallbackHandler:
        return self

    def __deepcopy__(self, memo: object) -> RagspanCallbackHandler:
        return self

    # The framework's older callbacks tell less than its spans, and nothing that these do not tell.

    def on_event_start(
        self,
        event_type: Any,  # noqa: ARG002  the framework's signature
        payload: dict[str, Any] | None = None,  # noqa: ARG002  as above
        event_id: str = "",
        parent_id: str = "",  # noqa: ARG002  as above
        **_: Any,
    ) -> str:
        return event_id

    def on_event_end(
        self,
        event_type: Any,
        payload: dict[str, Any] | None = None,
        event_id: str = "",
        **kwargs: Any,
    ) -> None:
        pass

    def start_trace(self, trace_id: str | None = None) -> None:
        pass

    def end_trace(self, trace_id: str | None = None, trace_map: dict[str, list[str]] | None = None) -> None:
        pass
