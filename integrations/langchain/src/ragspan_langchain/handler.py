"""The callback handler that users attach."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from ragspan.config import is_enabled
from ragspan.records import Capture, RecordSink
from ragspan.throttled_log import ThrottledLog
from ragspan_langchain.tracker import RunTracker
from ragspan_langchain.trackers import tracker_for


class RagspanCallbackHandler(BaseCallbackHandler):
    """Captures every request of the chains, agents and graphs that it is attached to.

    Pass it where LangChain takes callbacks: `chain.invoke(question, config={"callbacks": [RagspanCallbackHandler()]})`.
    One handler serves any number of requests at the same time, from any threads and event loops. It takes notes only:
    the record is made, and scored, in the sink's worker.

    It pickles. In another process the copy captures for the default sink there, or for its own sink, which is pickled with
    it; where that does not pickle, as an engine does not, the copy captures nothing, and a warning says so.

    Args:
        sink: gets a capture of each request; `ragspan.default_engine()`, or what `RAGSPAN_SINK` names, when none is given.

    Raises:
        ragspan.ConfigurationError: `sink` takes no records, or none is given and a `RAGSPAN_*` variable has a wrong value.
    """

    # In async code a handler that is not inline costs an executor hop per event, even per token.
    run_inline = True
    raise_error = False

    def __new__(cls, *_: Any, **__: Any) -> RagspanCallbackHandler:  # noqa: PYI034  Python 3.10 has no Self
        return super().__new__(_with_graph_events(cls) if "langgraph" in sys.modules else cls)

    def __init__(self, sink: RecordSink | None = None) -> None:
        self._own_sink = sink
        from ragspan.defaults import sink_or_default

        self.tracker: RunTracker = tracker_for(sink_or_default(sink))
        self.enable(enabled=is_enabled())

    @property
    def open_runs(self) -> int:
        """How many runs are still followed; 0 when no request is in flight."""
        return self.tracker.open_runs

    # Copies of a chain report to the same handler; those in another process (Ray, Spark) to the sink of that process.

    def __copy__(self) -> RagspanCallbackHandler:
        return self

    def __deepcopy__(self, memo: object) -> RagspanCallbackHandler:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        cls = next((plain for plain, aware in _graph_aware.items() if aware is type(self)), type(self))
        if _pickles(self._own_sink):
            return cls, () if self._own_sink is None else (self._own_sink,)
        return _copy_without_sink, (cls,)

    # Every method below is a boundary: what goes wrong inside is counted and costs a score, never an answer.
    #
    # LangChain skips a handler whose `ignore_*` is true: nothing is called at all then.

    # They are plain attributes, looked up at every event, and no properties as in the base class.
    ignore_llm = ignore_chat_model = ignore_chain = ignore_agent = ignore_retriever = False
    ignore_retry = ignore_custom_event = True  # nothing to learn from these

    def enable(self, *, enabled: bool) -> None:
        """Switch all listening on or off."""
        self.ignore_llm = self.ignore_chat_model = self.ignore_chain = not enabled
        self.ignore_agent = self.ignore_retriever = not enabled

    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        try:
            self.tracker.start_chain(run_id, parent_run_id, _name(serialized, kwargs, "chain"), inputs, kwargs)
        except Exception as problem:  # noqa: BLE001
            self.tracker.report(problem)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        try:
            self.tracker.end_chain(run_id, outputs, kwargs.get("inputs"))
        except Exception as problem:  # noqa: BLE001
            self.tracker.report(problem)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        try:
            self.tracker.fail(run_id, error, kwargs.get("inputs"))
        except Exception as problem:  # noqa: BLE001
            self.tracker.report(problem)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any] | None,
        messages: list[list[Any]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        try:
            prompt: Sequence[Any] = messages[0] if messages else ()
            self.tracker.start_model(run_id, parent_run_id, _name(serialized, kwargs, "model"), prompt, kwargs)
        except Exception as problem:  # noqa: BLE001
            self.tracker.report(problem)

    def on_llm_start(
        self,
        serialized: dict[str, Any] | None,
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        try:
            self.tracker.start_model(run_id, parent_run_id, _name(serialized, kwargs, "model"), prompts[:1], kwargs)
        except Exception as problem:  # noqa: BLE001
            self.tracker.report(problem)

    # The parameter must be called `token`: LangChain passes it by keyword in sync code, by position in async code.

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, run_id: UUID, **_: Any) -> None:
        try:
            self.tracker.new_token(run_id, token, chunk)
        except Exception as problem:  # noqa: BLE001
            self.tracker.report(problem)

    def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
        try:
            self.tracker.end_model(run_id, response)
        except Exception as problem:  # noqa: BLE001
            self.tracker.report(problem)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        try:
            self.tracker.fail(run_id, error, None)
        except Exception as problem:  # noqa: BLE001
            self.tracker.report(problem)

    def on_retriever_start(
        self,
        serialized: dict[str, Any] | None,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        try:
            self.tracker.start_search(run_id, parent_run_id, _name(serialized, kwargs, "retriever"), query, kwargs)
        except Exception as problem:  # noqa: BLE001
            self.tracker.report(problem)

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **_: Any) -> None:
        try:
            self.tracker.end_search(run_id, documents)
        except Exception as problem:  # noqa: BLE001
            self.tracker.report(problem)

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        try:
            self.tracker.fail(run_id, error, None)
        except Exception as problem:  # noqa: BLE001
            self.tracker.report(problem)

    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        inputs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        try:
            arguments = input_str if inputs is None else inputs
            self.tracker.start_tool(run_id, parent_run_id, _name(serialized, kwargs, "tool"), arguments, kwargs)
        except Exception as problem:  # noqa: BLE001
            self.tracker.report(problem)

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        try:
            self.tracker.end_tool(run_id, output)
        except Exception as problem:  # noqa: BLE001
            self.tracker.report(problem)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        try:
            self.tracker.fail(run_id, error, None)
        except Exception as problem:  # noqa: BLE001
            self.tracker.report(problem)

    # LangGraph's own events, which tell of breakpoints as well: nothing raises there. Where another library wraps the
    # callback managers they reach every handler.

    def on_interrupt(self, event: Any) -> None:
        try:
            self.tracker.interrupted(getattr(event, "run_id", None))
        except Exception as problem:  # noqa: BLE001
            self.tracker.report(problem)

    def on_resume(self, event: Any) -> None:
        """A graph goes on after an interruption: a request like any other."""


def _pickles(sink: RecordSink | None) -> bool:
    try:
        pickle.dumps(sink)
    except Exception:  # noqa: BLE001  whatever a program's own sink raises
        _log.trouble("pickle", "the sink of a handler does not pickle: a copy in another process captures nothing")
        return False
    return True


def _copy_without_sink(cls: type[RagspanCallbackHandler]) -> RagspanCallbackHandler:
    copy = cls(_Nowhere())
    copy.enable(enabled=False)
    return copy


class _Nowhere:
    """The sink of a copy that captures nothing."""

    def submit(self, capture: Capture) -> None:
        """Drop it."""


_log = ThrottledLog()
_graph_aware: dict[type, type] = {}


def _with_graph_events(cls: type[RagspanCallbackHandler]) -> type[RagspanCallbackHandler]:
    """The class, made one that LangGraph sends its own events to; LangGraph is not imported for that."""
    if cls not in _graph_aware:
        try:
            from langgraph.callbacks import GraphCallbackHandler
        except ImportError:  # an early LangGraph
            return cls
        aware = issubclass(cls, GraphCallbackHandler)
        _graph_aware[cls] = cls if aware else type(cls.__name__, (cls, GraphCallbackHandler), {})
    return _graph_aware[cls]


def _name(serialized: dict[str, Any] | None, about: dict[str, Any], default: str) -> str:
    name = about.get("name")
    if name is None and isinstance(serialized, dict):
        name = serialized.get("name") or (serialized.get("id") or [default])[-1]
    return name if isinstance(name, str) and name else default
