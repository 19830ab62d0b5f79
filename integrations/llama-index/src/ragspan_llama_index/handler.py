"""The handler that users attach."""

from __future__ import annotations

from copyreg import __newobj__  # type: ignore[attr-defined]
from typing import Any

from llama_index.core.callbacks.base_handler import BaseCallbackHandler

from ragspan.records import RecordSink
from ragspan_llama_index.instrumentor import attach, detach
from ragspan_llama_index.recorder import SpanRecorder


class RagspanCallbackHandler(BaseCallbackHandler):
    """Captures every request of the process's query engines, chat engines, agents and workflows.

    `Settings.callback_manager = CallbackManager([RagspanCallbackHandler()])` is the familiar way, and constructing it is
    enough: it listens to the framework's spans, of engines that were built before, too. It takes notes only: the record is
    made, and scored, in the sink's worker. Handlers of the same sink make one record of a request.

    It pickles: the copy captures for the default sink of its process, or nothing where the handler has a sink of its own.

    Args:
        sink: gets a capture of each request; `ragspan.default_engine()`, or what `RAGSPAN_SINK` names, when none is given.

    Raises:
        ragspan.ConfigurationError: `sink` takes no records, or none is given and a `RAGSPAN_*` variable has a wrong value.
    """

    _recorder: SpanRecorder | None = None

    def __init__(self, sink: RecordSink | None = None) -> None:
        super().__init__(event_starts_to_ignore=[], event_ends_to_ignore=[])
        self._own_sink = sink
        self._recorder = attach(self, sink)

    @property
    def open_spans(self) -> int:
        """How many spans are still followed; 0 when no request is in flight."""
        return 0 if self._recorder is None else self._recorder.open_spans

    def detach(self) -> None:
        """Stop capturing. Streams that are open go on and are not recorded; may be called again."""
        detach(self)

    # Callback managers are copied together with the engines that hold them.

    def __copy__(self) -> RagspanCallbackHandler:
        return self

    def __deepcopy__(self, memo: object) -> RagspanCallbackHandler:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._recorder is not None and self._own_sink is None:
            return type(self), ()
        state = {"event_starts_to_ignore": (), "event_ends_to_ignore": (), "_own_sink": None}
        return __newobj__, (type(self),), state  # which captures nothing

    # The framework's older callbacks tell less than its spans, and nothing that these do not tell.

    def on_event_start(self, *_: Any, event_id: str = "", **__: Any) -> str:
        return event_id

    def on_event_end(self, *_: Any, **__: Any) -> None:
        pass

    start_trace = end_trace = on_event_end
