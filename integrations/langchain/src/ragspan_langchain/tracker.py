"""Follows runs from their start events to their end events, on the request path.

Guarantees:

- Every method returns in microseconds, takes no lock, does no I/O, makes no span and attaches no context. Lists and
  dictionaries are changed by single operations that are atomic under the interpreter's lock, so that a finaliser which
  ends a dropped stream may come in at any point, in any thread.
- What is known of a request is dropped when its root run ends, whether or not its inner runs did: cancelled runs get no
  end event. Roots that never end are handed over as aborted after a while, or when too many are open.
- One request gives one capture. Runs whose parent is live belong to the request of that parent; so do inner calls that
  got the callbacks once more. Events that come after the end of their request are ignored.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from ragspan.capturing import enclosing_answer
from ragspan.records import RecordSink, RetrievedContext
from ragspan.step_texts import note_error
from ragspan.telemetry.anchors import current_anchor
from ragspan.telemetry.suppress import is_suppressed
from ragspan.throttled_log import ThrottledLog
from ragspan_langchain.anchors import openinference_is_active
from ragspan_langchain.assembly import TraceCapture
from ragspan_langchain.ended_runs import EndedRuns
from ragspan_langchain.grouping import Group
from ragspan_langchain.payloads.documents import documents_in, documents_of_messages, scored_document, tool_messages
from ragspan_langchain.payloads.freezing import OPAQUE, FrozenMessage, Opaque, freeze, output_of
from ragspan_langchain.payloads.messages import prompt_parts
from ragspan_langchain.payloads.shapes import READABLE
from ragspan_langchain.replies import reply_of, result_of_tool
from ragspan_langchain.runs import Kind, ModelRun, Run, RunId, SearchRun, SeenDocument, ToolRun, Trace, key_of
from ragspan_langchain.surroundings import enclosing_run_id, tokens_are_delivered
from ragspan_langchain.waiting_threads import WaitingThreads

_MAX_SAVED_STATES = 5
_PLAIN = frozenset({str, int, float, bool, type(None)})

_AnyRun = TypeVar("_AnyRun", bound=Run)

_log = ThrottledLog()
_OVER = Trace("")  # stands for the request of a run whose request is over
_ended = EndedRuns()  # run ids are unique in a process, so one table serves every tracker
_waiting = WaitingThreads()  # a conversation outlives the tracker where a program makes a handler for each request


class RunTracker:
    """The open runs of all requests that one sink is to get; handlers of the same sink share it.

    Args:
        sink: gets a capture of each request.
        max_open: requests that may be open at the same time; the oldest is handed over as aborted beyond.
        max_seconds: after which a request in which nothing new begins is handed over as aborted.
        sweep_seconds: at least between two looks for such requests.
    """

    def __init__(
        self,
        sink: RecordSink,
        *,
        max_open: int = 10_000,
        max_seconds: float = 3600.0,
        sweep_seconds: float = 60.0,
    ) -> None:
        self.sink = sink
        self._max_open = max_open
        self._max_seconds = max_seconds
        self._sweep_seconds = sweep_seconds
        self._live: dict[int, Run] = {}  # by the number of their id: hashing a UUID is a Python call
        self._open: dict[int, Trace] = {}  # those with a root, by identity, in order of their start
        self._next_sweep = time.monotonic() + sweep_seconds

    @property
    def open_runs(self) -> int:
        return len(self._live)

    # Starts

    def start_chain(
        self, run_id: RunId, parent_id: RunId | None, name: str, inputs: Any, about: Mapping[str, Any]
    ) -> None:
        run = self._start(Run, run_id, parent_id, name, about)
        if run is None:
            return
        trace = run.trace
        if run.parent is None:
            self._note_inputs(trace, inputs)
        elif trace.inputs is OPAQUE and len(trace.saved_states) < _MAX_SAVED_STATES:
            trace.saved_states.append(freeze(inputs))  # called with a command, not a question: steps have the state
        if isinstance(inputs, str):
            run.query = inputs
            return
        if isinstance(inputs, dict):
            run.fields = inputs
        if trace.unreadable and id(inputs) in trace.unreadable:
            run.consumed = id(inputs)
        for found in documents_in(inputs):
            trace.see(found, run, ranked=False, inputs=inputs)

    def start_tool(
        self, run_id: RunId, parent_id: RunId | None, name: str, inputs: Any, about: Mapping[str, Any]
    ) -> None:
        run = self._start(ToolRun, run_id, parent_id, name, about)
        if run is None:
            return
        if run.parent is None:
            self._note_inputs(run.trace, inputs)
        run.trace.tools.append(run)
        run.call_id = about.get("tool_call_id")
        texts = list(inputs.values()) if isinstance(inputs, dict) else [inputs]
        # What a model writes is plain, and seldom nested; all else is the program's own.
        run.arguments = inputs if _PLAIN.issuperset(map(type, texts)) else freeze(inputs)
        run.trace.queries += [text for text in texts if isinstance(text, str)]

    def start_search(
        self, run_id: RunId, parent_id: RunId | None, name: str, query: Any, about: Mapping[str, Any]
    ) -> None:
        run = self._start(SearchRun, run_id, parent_id, name, about)
        if run is None:
            return
        if isinstance(query, str):
            run.query = query
            run.trace.queries.append(query)
        if run.parent is None:
            self._note_inputs(run.trace, query)
        else:
            run.trace.open_searches[run.key] = run.parent
        run.told = about.get("metadata") or run.told
        run.trace.searches.append(run)

    def start_model(
        self, run_id: RunId, parent_id: RunId | None, name: str, messages: Sequence[Any], about: Mapping[str, Any]
    ) -> None:
        """`messages` are those of a chat, or the one text of a plain prompt."""
        run = self._start(ModelRun, run_id, parent_id, name, about)
        if run is None:
            return
        trace = run.trace
        metadata = about.get("metadata") or {}
        run.model, run.provider = metadata.get("ls_model_name"), metadata.get("ls_provider")
        if not trace.tokens_delivered and tokens_are_delivered():
            trace.tokens_delivered = True
        if not run.inside_search:
            current, carried = documents_of_messages(messages)
            told = about.get("invocation_params") or {}
            beside = told.get("documents") or told.get("source_documents")  # the latter of Cohere's chat before 2024
            if beside is not None:
                current = [*current, *documents_in(beside)]
            for found in current:
                trace.see(found, run, ranked=trace.brought(found, run))
            if carried:
                trace.carried_documents = True
            run.prompt = trace.prompt(prompt_parts(messages, beside))
        if run.parent is None:
            self._note_inputs(trace, [FrozenMessage(role=part.role, text=part.text) for part in run.prompt.parts])
        trace.models.append(run)

    # Ends

    def end_chain(self, run_id: RunId, outputs: Any, inputs: Any) -> None:
        run = self._end(run_id)
        if run is None:
            return
        trace = run.trace
        for found in documents_in(outputs):
            brought = run.parent is not None and trace.brought(found, run)  # then they are the result of a search
            trace.see(found, run, ranked=brought)
            if brought:
                trace.queries += run.searched_with()
            if run.consumed:
                trace.unreadable.pop(run.consumed, None)
        if type(outputs) is not str and run.searched_in_vain(outputs, inputs):
            trace.empty_search = True
        if run.parent is None:
            self._end_of_top(run, outputs, inputs)

    def end_tool(self, run_id: RunId, output: Any) -> None:
        run = self._end(run_id)
        if run is None:
            return
        shown: list[SeenDocument] = []
        messages = tool_messages(output)
        for message in messages:
            artifact = getattr(message, "artifact", None)
            if isinstance(artifact, READABLE) and len(artifact) == 0:
                run.trace.empty_search = True
            for found in documents_in(artifact):
                shown += run.trace.see(found, run, ranked=True)
        for found in documents_in(output):
            shown += run.trace.see(found, run, ranked=True)
        if isinstance(run, ToolRun):
            run.shown = shown
            run.result = result_of_tool(output, messages)
        if run.parent is None:
            self._end_of_top(run, output, None)

    def end_search(self, run_id: RunId, documents: Any) -> None:
        run = self._end(run_id)
        if not isinstance(run, SearchRun):
            return
        run.find_span()
        trace = run.trace
        trace.open_searches.pop(run.key, None)
        if not isinstance(documents, READABLE):
            trace.unreadable[id(documents)] = run
        elif len(documents) == 0:
            trace.empty_search = True
        else:
            # What leaves the outermost search is the ranked result; the lists within are its own affair.
            pairs = [(item, None) if isinstance(item, str) else scored_document(item) for item in documents]
            run.found = trace.see([pair for pair in pairs if pair is not None], run, ranked=not run.inside_search)
            for key in [key for key, inner in trace.unreadable.items() if inner.is_within(run)]:
                trace.unreadable.pop(key, None)
        if run.parent is None:
            self._end_of_top(run, OPAQUE, None)

    def end_model(self, run_id: RunId, response: Any) -> None:
        run = self._end(run_id)
        if not isinstance(run, ModelRun):
            return
        run.reply = reply_of(response)
        if run.parent is None:
            self._end_of_top(run, run.reply.text, None)

    def fail(self, run_id: RunId, error: BaseException, inputs: Any) -> None:
        """Any run that ended with an error; the error is not kept, for it would keep the request's frames alive."""
        run = self._end(run_id)
        if run is None:
            return
        run.error = type(error).__name__
        if run.kind is not Kind.CHAIN:
            run.noted = note_error(error)
        if isinstance(run, SearchRun):
            run.find_span()
        if run.parent is None:
            run.trace.error = run.error
            run.trace.noted = run.noted or note_error(error)
            self._end_of_top(run, OPAQUE, inputs)
            return
        run.trace.open_searches.pop(run.key, None)
        if any(kind.__name__ == "GraphInterrupt" for kind in type(error).__mro__):
            run.trace.interrupted.append(run.parent)

    # Between

    def new_token(self, run_id: RunId, token: Any, chunk: Any) -> None:
        run = self._live.get(run_id.int if type(run_id) is UUID else key_of(run_id))
        if not isinstance(run, ModelRun):
            return
        if run.copies > 1:
            run.token_calls += 1
            if run.token_calls % run.copies != 1:
                return
        if run.first_token_ns is None:
            run.first_token_ns = time.time_ns()
        run.tokens.append(token)
        run.last_chunk = chunk

    def interrupted(self, run_id: RunId | None) -> None:
        """A graph says that it stops to wait for a person."""
        run = self._live.get(key_of(run_id)) if run_id is not None else None
        if run is not None:
            run.trace.interrupted.append(run)

    def record_contexts(self, run_id: RunId, contexts: Sequence[RetrievedContext]) -> bool:
        """The program says that these contexts reach the prompt; False when the run is not followed."""
        run = self._live.get(key_of(run_id))
        if run is None:
            return False
        run.trace.recorded += contexts
        return True

    def report(self, error: Exception) -> None:
        """Something went wrong in a callback: it is logged, by its type, and the sink counts it where it can."""
        _log.trouble("callback", "a callback of ragspan failed with %s", type(error).__name__)
        count_error = getattr(self.sink, "count_error", None)
        if count_error is not None:
            count_error("callback")

    # Inside

    def _start(
        self, make: type[_AnyRun], run_id: RunId, parent_id: RunId | None, name: str, about: Mapping[str, Any]
    ) -> _AnyRun | None:
        """Note a run; None when it is known already, or belongs to no request that is followed."""
        live = self._live
        key = run_id.int if type(run_id) is UUID else key_of(run_id)
        known = live.get(key)
        if known is not None:
            known.copies += 1
            return None
        parent_key = parent_id.int if type(parent_id) is UUID else key_of(parent_id)
        parent = live.get(parent_key)
        if parent is None:
            parent = self._enclosing()
        if parent is not None:
            trace = parent.trace
            if trace is _OVER:
                return None
            if trace.anchor_pending:
                trace.find_anchor()
        elif parent_id is not None and parent_key in _ended:
            _ended.add(key)  # what goes on in the background is ignored, and so is what it calls
            return None
        elif is_suppressed():
            return None
        else:
            trace = self._new_request(name, about)
        run = make(run_id, key, name, parent, trace)
        if parent is None:
            self._note_top(run)
        trace.runs.append(run)
        live[key] = run
        if trace.closed:  # it ended in another thread meanwhile
            live.pop(key, None)
        return run

    def _enclosing(self) -> Run | None:
        """The run around a call that looks like a root because the callbacks were passed to it once more."""
        enclosing = enclosing_run_id()
        return None if enclosing is None else self._live.get(key_of(enclosing))

    def _new_request(self, name: str, about: Mapping[str, Any]) -> Trace:
        answer = enclosing_answer()
        if answer is not None:
            return answer.part(self, lambda: Group(Trace(name), close=self.close)).trace
        trace = Trace(name)
        trace.tags = tuple(tag for tag in about.get("tags") or () if isinstance(tag, str))
        trace.metadata = dict(about.get("metadata") or {})
        trace.is_part = about.get("run_type") in {"parser", "prompt"}
        trace.anchor = current_anchor()
        self._sweep()
        self._open[id(trace)] = trace
        return trace

    def _note_top(self, run: Run) -> None:
        trace = run.trace
        if trace.grouped or trace.root is not None:
            return
        trace.root = run
        if openinference_is_active():
            trace.anchor_pending = True
            trace.find_anchor()

    def _note_inputs(self, trace: Trace, inputs: Any) -> None:
        if trace.grouped and not isinstance(trace.inputs, Opaque):
            return
        if isinstance(inputs, dict) and len(inputs) == 1 and inputs.get("input") == "":
            trace.streamed = True  # a stream's real input comes with its end
        else:
            trace.inputs = OPAQUE if inputs is None else freeze(inputs)
            _waiting.hand_over(trace)

    def _end(self, run_id: RunId) -> Run | None:
        run = self._live.pop(run_id.int if type(run_id) is UUID else key_of(run_id), None)
        if run is None or run.trace is _OVER:
            return None
        run.ended_ns = time.time_ns()
        return run

    def _end_of_top(self, run: Run, outputs: Any, inputs: Any) -> None:
        trace = run.trace
        if trace.anchor_pending:
            trace.find_anchor()
        trace.output = freeze(output_of(outputs))
        if inputs is not None:
            trace.streamed = True
            self._note_inputs(trace, inputs)
            for found in documents_in(inputs):
                trace.see(found, run, ranked=False, inputs=inputs)
        if run is trace.root:
            self.sink.submit(self.close(trace))

    def close(self, trace: Trace) -> TraceCapture:
        """The request is over: forget its runs and make the capture."""
        trace.closed = True
        trace.ended_ns = time.time_ns()
        self._open.pop(id(trace), None)
        for run in trace.runs:
            key = run.key
            self._live.pop(key, None)
            _ended.add(key)
            run.trace = _OVER  # no cycle is left behind: what nobody needs any more goes at once, without the collector
        trace.release()
        capture = TraceCapture(trace)
        if trace.interrupted or trace.is_resumed:
            _waiting.settle(trace, capture.size_hint)
        return capture

    def _sweep(self) -> None:
        """Hand over requests that seem never to end: the oldest where too many are open, and those that stand still."""
        while len(self._open) >= self._max_open:
            self._give_up(next(iter(self._open.values())))
        now = time.monotonic()
        if now < self._next_sweep:
            return
        self._next_sweep = now + self._sweep_seconds
        _OVER.forget()  # an event that came at the very moment of an end may have left something there
        too_old = time.time_ns() - int(self._max_seconds * 1e9)
        for trace in list(self._open.values()):
            if trace.last_start_ns() < too_old:
                self._give_up(trace)

    def _give_up(self, trace: Trace) -> None:
        trace.error = "GeneratorExit"  # as for a stream that its reader left
        self.sink.submit(self.close(trace))
