"""The callback handler that users attach, and the instrumentor that attaches it to every LangChain call of the process."""

from __future__ import annotations

import copy
import functools
from collections.abc import Collection, Sequence
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.callbacks.manager import AsyncCallbackManager, AsyncCallbackManagerForLLMRun
from langchain_core.tracers.context import register_configure_hook
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]  # the package is not typed

from ragspan.config import is_enabled
from ragspan.installed import requirements_of_extra
from ragspan.process import set_up_or_off
from ragspan.records import Capture, RecordSink, RetrievedContext
from ragspan_langchain.recorder import EventRecorder, recorder_for
from ragspan_langchain.running import enclosing_run_id, handlers_around


class RagspanCallbackHandler(BaseCallbackHandler):
    """Captures every request of the chains, agents and graphs that it is attached to.

    Pass it where LangChain takes callbacks: `chain.invoke(question, config={"callbacks": [RagspanCallbackHandler()]})`.
    One handler serves any number of requests at the same time, from any threads and event loops. It takes notes only:
    the record is made, and scored, in the sink's worker.

    It pickles: the copy captures for the default sink of its process, or nothing where the handler has a sink of its own.

    Args:
        sink: gets a capture of each request; `ragspan.default_engine()`, or what `RAGSPAN_SINK` names, when none is given.

    Raises:
        ragspan.ConfigurationError: `sink` takes no records, or none is given and a `RAGSPAN_*` variable has a wrong value.
    """

    # In async code a handler that is not inline costs an executor hop per event, even per token.
    run_inline = True
    raise_error = False

    def __init__(self, sink: RecordSink | None = None) -> None:
        self._own_sink = sink
        from ragspan.defaults import sink_or_default

        self.report_to(recorder_for(sink_or_default(sink)))
        self.enable(enabled=is_enabled())

    def report_to(self, recorder: EventRecorder) -> None:
        """Have this recorder note the events from now on."""
        self.recorder = recorder
        if type(self).on_llm_new_token is RagspanCallbackHandler.on_llm_new_token:
            # In the instance, where it hides the method: nothing then stands between LangChain and the recorder at each token.
            vars(self).update(on_llm_new_token=recorder.new_token)

    @property
    def open_runs(self) -> int:
        """How many runs are still followed; 0 when no request is in flight."""
        return len(self.recorder.requests.live)

    # Copies of a chain report to the same handler; those in another process (Ray, Spark) to the sink of that process.

    def __copy__(self) -> RagspanCallbackHandler:
        return self

    def __deepcopy__(self, memo: object) -> RagspanCallbackHandler:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), () if self._own_sink is None else (_NullSink(),)

    # LangChain skips a handler whose `ignore_*` is true: nothing is called at all then. They are plain attributes, looked up
    # at every event, and no properties as in the base class.
    ignore_llm = ignore_chat_model = ignore_chain = ignore_agent = ignore_retriever = False
    ignore_custom_event = False
    ignore_retry = True  # nothing to learn from these

    def enable(self, *, enabled: bool) -> None:
        """Switch all listening on or off."""
        self.ignore_llm = self.ignore_chat_model = self.ignore_chain = not enabled
        self.ignore_agent = self.ignore_retriever = self.ignore_custom_event = not enabled

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **about: Any) -> None:
        self.recorder.start("chain", run_id, inputs, serialized, about)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, inputs: Any = None, **_: Any) -> None:
        self.recorder.end("chain", run_id, outputs, inputs)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, inputs: Any = None, **_: Any) -> None:
        self.recorder.end("error", run_id, error, inputs)

    on_llm_error = on_retriever_error = on_tool_error = on_chain_error

    def on_chat_model_start(self, serialized: Any, messages: list[list[Any]], *, run_id: UUID, **about: Any) -> None:
        self.recorder.start("model", run_id, messages[0] if messages else (), serialized, about)

    def on_llm_start(self, serialized: Any, prompts: list[str], *, run_id: UUID, **about: Any) -> None:
        self.recorder.start("model", run_id, prompts, serialized, about)

    # The parameter must be called `token`: LangChain passes it by keyword in sync code, by position in async code.

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, run_id: UUID, **_: Any) -> None:
        self.recorder.new_token(token, chunk=chunk, run_id=run_id)

    def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
        self.recorder.end("model", run_id, response)

    def on_retriever_start(self, serialized: Any, query: str, *, run_id: UUID, **about: Any) -> None:
        self.recorder.start("retriever", run_id, query, serialized, about)

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **_: Any) -> None:
        self.recorder.end("retriever", run_id, documents)

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: UUID, **about: Any) -> None:
        inputs = about.get("inputs")
        self.recorder.start("tool", run_id, input_str if inputs is None else inputs, serialized, about)

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        self.recorder.end("tool", run_id, output)

    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **_: Any) -> None:
        """The program shows something by `dispatch_custom_event`: the documents in it count as found."""
        self.recorder.note_shown(run_id, data, name)

    def on_interrupt(self, event: Any) -> None:
        """LangGraph's own event, which reaches every handler where another library wraps the callback managers."""

    on_resume = on_interrupt


class _NullSink:
    def submit(self, capture: Capture) -> None:
        """Drop it."""


def record_contexts_of_run(contexts: Sequence[RetrievedContext]) -> bool:
    """Note contexts for the run whose function is calling; False outside of any run with a ragspan handler."""
    run_id = enclosing_run_id()
    if run_id is None:
        return False
    ours = [handler for handler in handlers_around() if isinstance(handler, RagspanCallbackHandler)]
    recorders = {id(handler.recorder): handler.recorder for handler in ours}
    taken = [recorder.record_contexts(run_id, contexts) for recorder in recorders.values()]
    return any(taken)


class RagspanLangChainInstrumentor(BaseInstrumentor):  # type: ignore[misc]  # as above
    """Captures every LangChain request of the process: `RagspanLangChainInstrumentor().instrument()`.

    `opentelemetry-instrument python app.py` finds it by its entry point. `instrument(sink=...)` takes a sink, else the
    answers go to `ragspan.default_engine()`, or to what `RAGSPAN_SINK` names. It raises nothing: where ragspan cannot be set
    up, one line of the log says why, and it is off. A handler of the same sink that is passed explicitly makes no second
    record.

    LangChain itself asks registered context variables for handlers whenever it configures a call. A
    registration cannot be taken back, so it is made once, and the handler is switched off and on.
    """

    framework = "langchain_core"
    registered: RagspanCallbackHandler | None = None

    def instrumentation_dependencies(self) -> Collection[str]:
        """What `opentelemetry-instrument` checks; read from the distribution, so that it cannot differ from it."""
        return requirements_of_extra("ragspan-langchain", "instruments")

    def _instrument(self, **kwargs: Any) -> None:
        with set_up_or_off():
            handler = RagspanCallbackHandler(sink=kwargs.get("sink"))
            if self.registered is None:
                type(self).registered = handler
                # A default is seen in every context, plain threads included; a value that was set would not be.
                register_configure_hook(ContextVar("ragspan_langchain_handler", default=handler), inheritable=True)
            else:
                self.registered.report_to(handler.recorder)
                self.registered.enable(enabled=is_enabled())

    def _uninstrument(self, **_: Any) -> None:
        if self.registered is not None:
            self.registered.enable(enabled=False)


# LangChain's asynchronous manager tells the inline handlers that a plain language model starts or, where there is none, the
# others: one inline handler takes that event from all that are not. So where nobody but us is inline, the manager tells the
# others as if we were not there, and we are told afterwards.

_original = AsyncCallbackManager.on_llm_start


@functools.wraps(_original)
async def _on_llm_start(
    self: AsyncCallbackManager, serialized: Any, prompts: list[str], run_id: UUID | None = None, **about: Any
) -> list[AsyncCallbackManagerForLLMRun]:
    ours = [each for each in self.handlers if isinstance(each, RagspanCallbackHandler)]
    others = [each for each in self.handlers if not isinstance(each, RagspanCallbackHandler)]
    if not ours or not others or any(each.run_inline for each in others):
        return await _original(self, serialized, prompts, run_id, **about)
    without_us = copy.copy(self)
    without_us.handlers = others
    runs = await _original(without_us, serialized, prompts, run_id, **about)
    known = {"tags": self.tags, "metadata": self.metadata, **about}
    for prompt, run in zip(prompts, runs, strict=True):
        run.handlers = self.handlers
        for each in ours:
            if not each.ignore_llm:
                each.on_llm_start(serialized, [prompt], run_id=run.run_id, parent_run_id=run.parent_run_id, **known)
    return runs


AsyncCallbackManager.on_llm_start = _on_llm_start  # type: ignore[method-assign]
