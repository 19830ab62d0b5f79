"""Makes the record of a request's steps: they become its tree, and `ragspan.request` makes the record, as for the handlers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ragspan import field_names
from ragspan.messages import MAX_MESSAGE, MAX_STACKTRACE, ErrorReport
from ragspan.records import RagRecord
from ragspan.request import (
    INTERRUPT,
    Document,
    ModelStep,
    PayloadMessage,
    RequestTree,
    RerankStep,
    SearchStep,
    Step,
    record_of,
)
from ragspan.safe_copy import OPAQUE, Opaque, Snapshot
from ragspan_receiver.readers.payloads import text
from ragspan_receiver.readers.steps import ReadSpan, anchor_of
from ragspan_receiver.spans import TracedSpan

_MAX_WRITTEN = 1000
_MAX_COMPARED = 100_000_000
_SYNTHESIS = (".synthesize", ".asynthesize")
_error_type = re.compile(r"[A-Za-z_][\w.]{0,200}(?=[(:]|$)")


class Request:
    """The steps of one request.

    Args:
        spans: each after the one around it; of a group, which has no root, several are outermost.
        around: the span around a group.
    """

    def __init__(self, spans: Sequence[ReadSpan], around: TracedSpan | None = None) -> None:
        self._grouped = around is not None
        self._span = around or spans[0].span
        _count_once(spans)
        _take_payloads_of_only_chain(spans)
        missing = _model_without_span(spans)
        self._spans = [*spans, *missing]
        self._was_left = _leave_streams_open(spans) or bool(missing)
        self._models = [(read, read.model) for read in self._spans if read.model is not None]
        self._said = {read: model.reply for read, model in self._models if model.reply is not None}
        self._framework = next((read.framework for read in spans if read.framework), "otlp")

    def record(self) -> RagRecord | None:
        """The record; None if nothing was answered."""
        root = self._spans[0]
        is_answer = root.framework == "langchain" or root.span.name.endswith(_SYNTHESIS)
        if not is_answer and not any(read.is_bare for read in self._spans):
            return None  # a splitter of texts, say
        record = record_of(self._tree())
        if record is None:
            return None
        return replace(
            record,
            record_id=f"{self._span.trace_id}{self._span.span_id}",
            is_agent=record.is_agent or any(read.kind == "agent" for read in self._spans),
            swallowed_errors=self._swallowed() if record.status == "complete" else (),
        )

    # The tree

    def _tree(self) -> RequestTree:
        metadata = dict(next((read.metadata for read in self._spans if read.metadata), {}))
        for read in reversed(self._spans):
            names = {"session_id": field_names.SESSION, "user_id": field_names.USER}
            ids = {key: text(read.span.attributes, *own) for key, own in names.items()}
            metadata |= {key: value for key, value in ids.items() if value is not None}
        tree = RequestTree(
            started_ns=self._span.start_ns,
            ended_ns=max(self._span.start_ns, self._span.end_ns),
            framework=self._framework,
            run_type="parser" if self._spans[0].chain.name.endswith("Parser") else None,
            tags=tuple(dict.fromkeys(tag for read in self._spans for tag in read.tags)),
            metadata=metadata,
            anchor=anchor_of(self._span),
            grouped=self._grouped,
        )
        written = self._others_written()
        for time_ns, read, is_over in self._moments():
            if is_over:
                self._end(tree, read, time_ns)
                continue
            self._begin(tree, read, time_ns)
            if written:
                shown = Step(name="", parent=read.step, started_ns=time_ns, inputs={"documents": written})
                tree.end(tree.begin(shown), time_ns)
                written = []
        return tree

    def _moments(self) -> list[tuple[int, ReadSpan, bool]]:
        """The starts and ends of the steps in order of time; those of one time in the order of the spans."""
        inside: dict[ReadSpan | None, list[ReadSpan]] = defaultdict(list)
        starts: dict[ReadSpan | None, int] = {None: 0}
        for read in self._spans:
            starts[read] = max(read.span.start_ns, starts[read.outer])
            inside[read.outer].append(read)
        moments: list[tuple[int, ReadSpan, bool]] = []
        waiting = [(read, False) for read in sorted(inside[None], key=lambda read: -read.span.start_ns)]
        while waiting:
            read, is_over = waiting.pop()
            if not is_over:
                moments.append((starts[read], read, False))
                later = sorted(inside[read], key=lambda inner: -starts[inner])
                waiting += [(read, True), *((inner, False) for inner in later)]
            elif read.has_ended:
                moments.append((max(starts[read], read.span.end_ns), read, True))
        return sorted(moments, key=lambda moment: moment[0])

    def _begin(self, tree: RequestTree, read: ReadSpan, time_ns: int) -> None:
        step = read.step
        step.started_ns = time_ns
        step.put_in(None if read.outer is None else read.outer.step)
        is_unsaid = type(step) is Step and isinstance(step.inputs, Opaque)
        if read.outer is None and is_unsaid and self._framework != "langchain":
            step.inputs = self._asked()
        if isinstance(step, ModelStep):
            step.reply = None  # until it ends
        tree.begin(step)

    def _end(self, tree: RequestTree, read: ReadSpan, time_ns: int) -> None:
        step = read.step
        last = self._last_model() if read.outer is None and _says_nothing(step.output) else None
        late = read.chain.inputs if self._was_left and read.outer is None else None  # as of a stream
        # The stream of the last model may be read after the request's span has ended, and fail then.
        error = _error_of(read.span) or (None if last is None else _error_of(last.span))
        if error is not None:
            step.output = OPAQUE
            tree.fail(step, time_ns, error, late)
        elif isinstance(step, ModelStep):
            tree.end(step, time_ns, self._said.get(read))
        else:
            is_found = isinstance(step, (SearchStep, RerankStep))
            said = None if last is None or is_found else self._said.get(last)
            tree.end(step, time_ns, said or step.output, late if not read.is_bare else None)

    def _asked(self) -> Snapshot:
        """What the request was called with, if its span does not say: what its first model or search was given."""
        asked = [read for read in self._spans if isinstance(read.step, (ModelStep, SearchStep))]
        first = min(asked, key=_start_of, default=None)
        if first is None or first.model is None:
            return OPAQUE if first is None or first.step.inputs is None else first.step.inputs
        return next((part.text for part in reversed(first.model.messages) if part.role == "human"), OPAQUE)

    def _last_model(self) -> ReadSpan | None:
        """The model whose words the caller got, if the request's span does not say."""
        models = [read for read, _ in self._models if not read.is_in_search()]
        return max(models, key=lambda read: read.span.end_ns, default=None)

    # Documents

    def _others_written(self) -> list[Document]:
        """Tell the documents found how LlamaIndex writes them, with their metadata; texts that no search found are others."""
        found = [document for read in self._spans for document, _ in read.found or ()]
        for document in found:
            lines = "\n".join(f"{key}: {value}" for key, value in document.metadata.items())
            document.written = f"{lines}\n\n{document.text}" if lines else None
        # LangChain's steps show documents as such: a text is none.
        spans = () if self._framework == "langchain" else self._spans
        texts = list(dict.fromkeys(each for read in spans for each in read.written if each.strip()))[:_MAX_WRITTEN]
        if len(found) * sum(map(len, texts)) > _MAX_COMPARED:
            return []
        return [Document(each, None, {}) for each in texts if not any(one.text in each for one in found if one.text)]

    def _swallowed(self) -> tuple[str, ...]:
        """The errors after which a framework answered all the same; with LangChain they are retries, which do not count."""
        errors = [] if self._framework == "langchain" else [_error_of(read.span) for read in self._spans[1:]]
        return tuple(dict.fromkeys(error.name for error in errors if error is not None))


def _count_once(spans: Sequence[ReadSpan]) -> None:
    """Make chains of steps that several spans show: a model's call around the client's, a search around its own inner part.

    Of a model's spans the outermost that has the prompt counts.
    """
    has_prompts = any(read.model is not None and read.model.messages for read in spans)
    for read in reversed(spans):
        model = read.model
        if isinstance(read.step, SearchStep) and read.found is None and read.is_in_search():
            read.step = read.chain
        elif model is not None:
            outer = [(each, each.model) for each in read.around() if each.model is not None]
            if any(around.messages for _, around in outer) or (not model.messages and (has_prompts or outer)):
                read.step = read.chain
                continue
            for each, around in reversed(outer):
                each.step = each.chain
                if around.reply is not None and (model.reply is None or not model.reply.text):
                    calls = model.reply.calls if model.reply else None
                    model.reply = PayloadMessage("ai", around.reply.text, calls)


def _take_payloads_of_only_chain(spans: Sequence[ReadSpan]) -> None:
    """Some instrumentations put a span without payloads around that of the chain."""
    root, inside = spans[0].step, [read for read in spans if read.outer is spans[0]]
    if len(inside) == 1 and inside[0].kind != "agent" and type(root) is type(inside[0].step) is Step:
        only = inside[0].step
        root.inputs = only.inputs if isinstance(root.inputs, Opaque) else root.inputs
        root.output = only.output if isinstance(root.output, Opaque) else root.output


def _leave_streams_open(spans: Sequence[ReadSpan]) -> bool:
    """Mark the models that LangChain's request did not wait for: a reader closed their stream, and their spans end later."""
    root = spans[0]
    if root.framework != "langchain" or root.is_bare:
        return False
    late = [read for read in spans if read.model is not None and read.span.end_ns > root.span.end_ns]
    left = [read for read in late if read.model and read.model.said != root.step.output]
    for read in left:
        read.has_ended = False
    return bool(left)


def _model_without_span(spans: Sequence[ReadSpan]) -> list[ReadSpan]:
    """The model behind a prompt that was filled in, if no span of a model follows: its stream was closed early."""
    made = max((read for read in spans if read.made_prompt), key=_start_of, default=None)
    if made is None or made.outer is None:
        return []
    if any(read.model is not None and _start_of(read) >= _start_of(made) for read in spans):
        return []
    model = ModelStep(name="model", parent=None, started_ns=made.span.start_ns, inputs=list(made.made_prompt))
    return [ReadSpan(span=made.span, chain=model, outer=made.outer, has_ended=False)]


def _start_of(read: ReadSpan) -> int:
    return read.span.start_ns


def _says_nothing(payload: Snapshot) -> bool:
    """Whether a payload holds objects that nobody can read, and nothing else."""
    items = payload.values() if isinstance(payload, dict) else payload
    if isinstance(payload, (dict, list)):
        return bool(payload) and all(map(_says_nothing, items))
    return isinstance(payload, Opaque)


def _error_of(span: TracedSpan) -> ErrorReport | None:
    """The error that ended a span. A graph that waits for a person has one, too, though it has not failed."""
    exception: Any = next((event.attributes for event in reversed(span.events) if event.name == "exception"), {})
    kind = text(exception, "exception.type") or text(span.attributes, "error.type")
    if not span.status_error and (kind or "").rpartition(".")[2] != INTERRUPT:
        return None
    if kind is None:
        match = _error_type.match(span.status_message)
        kind = match[0] if match else "Error"
    message = text(exception, "exception.message") or span.status_message
    stacktrace = text(exception, "exception.stacktrace") or ""
    return ErrorReport(type=kind, message=message[:MAX_MESSAGE], stacktrace=stacktrace[-MAX_STACKTRACE:])
