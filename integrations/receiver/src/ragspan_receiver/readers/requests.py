"""Which steps of a trace belong to one request, and its record: they become its tree, of which `ragspan.request` makes it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Any

from ragspan import field_names
from ragspan.messages import MAX_MESSAGE, ErrorReport
from ragspan.records import RagRecord, SpanAnchor
from ragspan.request import INTERRUPTS, Document, ModelStep, PayloadMessage, RequestTree, SearchStep, Step, record_of
from ragspan.safe_copy import OPAQUE, Opaque, Snapshot
from ragspan_receiver.readers import attribute_names as names
from ragspan_receiver.readers.payloads import first_of, text_of
from ragspan_receiver.readers.reading import ReadSpan
from ragspan_receiver.spans import TracedSpan

_MAX_AROUND = 1000  # spans that are looked through for the step around one
_MAX_COMPARED = 100_000_000  # characters
_SYNTHESIS = (".synthesize", ".asynthesize")
_CHUNKS = ("text_chunks", "context", "contexts", "passages")
"""The fields in which a step is given documents as texts, by LlamaIndex's synthesizers and DSPy's modules."""
_start_of = attrgetter("span.start_ns")
_thought = re.compile(r"Thought: .*?\nAnswer: ", re.DOTALL)  # of LlamaIndex's ReAct agents
_error_type = re.compile(r"[A-Za-z_][\w.]{0,200}(?=[(:]|$)")


def requests_in(
    spans: Sequence[TracedSpan], steps: Mapping[str, ReadSpan]
) -> Iterator[tuple[Sequence[ReadSpan], TracedSpan | None]]:
    """The steps of each request in a trace, each after the one around it; spans that are not steps do not count.

    A root makes a request. The roots that answer nothing by themselves, such as the searches and calls of models that a
    program makes one by one, make one together; the innermost span around them comes with it.
    """
    by_id = {span.span_id: span for span in spans}
    inside: dict[str, list[ReadSpan]] = defaultdict(list)
    bare: dict[str, list[tuple[ReadSpan, list[str]]]] = defaultdict(list)
    whole: list[ReadSpan] = []
    for step in sorted(steps.values(), key=_start_of):
        span: TracedSpan | None = step.span
        # Up to the step around it, or to the last span that there is; it may be a circle.
        path = {step.span.span_id: None}
        while span is not None and (outer := span.parent_id) is not None and outer not in path:
            path[outer] = None
            span = None if outer in steps or len(path) >= _MAX_AROUND else by_id.get(outer)
        last = next(reversed(path))
        if len(path) > 1 and last in steps:
            inside[last].append(step)
        elif step.is_bare:
            bare[last].append((step, list(path)))
        elif step.kind != "ignored":
            whole.append(step)
    for root in whole:
        yield _below([root], inside), None
    for group in bare.values():
        roots, paths = [root for root, _ in group], [path for _, path in group]
        shared = [span_id for span_id in paths[0] if all(span_id in path for path in paths)]
        yield _below(roots, inside), by_id.get(shared[0], roots[0].span) if len(group) > 1 else None


def _below(roots: Sequence[ReadSpan], inside: Mapping[str, Sequence[ReadSpan]]) -> Sequence[ReadSpan]:
    found: list[ReadSpan] = []
    waiting = list(reversed(roots))
    while waiting:
        step = waiting.pop()
        if step.kind != "ignored":
            found.append(step)
            for inner in reversed(inside.get(step.span.span_id, ())):
                inner.outer = step
                waiting.append(inner)
    return found


def record_of_spans(spans: Sequence[ReadSpan], around: TracedSpan | None = None) -> RagRecord | None:
    """The record of one request; None if nothing was answered.

    Args:
        spans: the steps, each after the one around it; of a group, which has no root, several are outermost.
        around: the span around a group.
    """
    root = spans[0]
    _count_once(spans)
    inside = [read for read in spans if read.outer is root]
    if len(inside) == 1 and inside[0].kind != "agent" and type(root.step) is type(inside[0].step) is Step:
        only = inside[0].step  # some instrumentations put a span without payloads around that of the chain
        root.step.inputs = only.inputs if isinstance(root.step.inputs, Opaque) else root.step.inputs
        root.step.output = only.output if isinstance(root.step.output, Opaque) else root.step.output
    is_answer = root.framework == "langchain" or root.span.name.endswith(_SYNTHESIS)
    if not is_answer and not any(read.is_bare for read in spans):
        return None  # a splitter of texts, say
    record = record_of(_tree_of(spans, around))
    if record is None:
        return None
    span = around or root.span
    # LangChain's retries do not count.
    errors = [] if root.framework == "langchain" else [_error_of(read.span) for read in spans[1:]]
    swallowed = tuple(dict.fromkeys(error.name for error in errors if error is not None))
    said = record.response or ""
    thought = _thought.match(said) if record.framework == "llama_index" else None
    return replace(
        record,
        response=record.response if thought is None else said[thought.end() :],
        record_id=f"{span.trace_id}{span.span_id}",
        is_agent=record.is_agent or any(read.kind == "agent" for read in spans),
        swallowed_errors=swallowed if record.status == "complete" else (),
    )


def _count_once(spans: Sequence[ReadSpan]) -> None:
    """Make chains of steps that several spans show: a model's call around the client's, a search around its own inner part.

    Of a model's spans the outermost that has the prompt as messages counts, or else that has it at all.
    """
    has_prompts = any(read.model is not None and read.model.messages for read in spans)
    for read in reversed(spans):
        model = read.model
        if isinstance(read.step, SearchStep) and read.found is None and read.is_in_search():
            read.step = read.chain
        elif model is not None:
            outer = [(each, each.model) for each in read.around() if each.model is not None]
            outer_counts = any(around.messages and each.shows_prompt >= read.shows_prompt for each, around in outer)
            if outer_counts or (not model.messages and (has_prompts or outer)):
                read.step = read.chain
                continue
            for each, around in reversed(outer):
                each.step = each.chain
                if around.reply is not None and (model.reply is None or not model.reply.text):
                    calls = None if model.reply is None else model.reply.calls
                    model.reply = PayloadMessage("ai", around.reply.text, calls)


def _tree_of(spans: Sequence[ReadSpan], around: TracedSpan | None) -> RequestTree:
    root, span = spans[0], around or spans[0].span
    framework = next((read.framework for read in spans if read.framework), "otlp")
    models = {read: read.model.reply for read in spans if read.model is not None}
    answering = max(
        (read for read in models if not read.is_in_search()), key=lambda read: read.span.end_ns, default=None
    )
    metadata = dict(next((read.metadata for read in spans if read.metadata), {}))
    tags: Any = ()
    for read in reversed(spans):
        ids = {"session_id": field_names.SESSION, "user_id": field_names.USER}
        tags = first_of(read.span.attributes, names.TAGS) or tags
        metadata |= {key: one for key, own in ids.items() if (one := text_of(read.span.attributes, own)) is not None}
    trace_id, span_id = int(span.trace_id, 16), int(span.span_id, 16)
    tree = RequestTree(
        started_ns=span.start_ns,
        ended_ns=max(span.start_ns, span.end_ns),
        framework=framework,
        run_type="parser" if root.chain.name.endswith("Parser") else None,
        metadata=metadata,
        tags=tags if isinstance(tags, (list, tuple)) else (),
        anchor=SpanAnchor(trace_id=trace_id, span_id=span_id, trace_state=span.trace_state, is_remote=True),
        grouped=around is not None,
    )
    written = _written_beside(spans) if framework != "langchain" else []  # whose steps show documents as such
    for time_ns, read, is_over in _moments(spans):
        step, is_outermost = read.step, read.outer is None
        if not is_over:
            step.started_ns = time_ns
            step.parent = None if read.outer is None else read.outer.step
            if is_outermost and type(step) is Step and isinstance(step.inputs, Opaque) and framework != "langchain":
                step.inputs = _asked(spans)
            if isinstance(step, ModelStep):
                step.reply = None  # until it ends
            tree.begin(step)
            if written:
                shown = Step(name="", parent=step, started_ns=time_ns, inputs={"documents": written})
                tree.end(tree.begin(shown), time_ns)
                written = []
        else:
            last = answering if is_outermost and _says_nothing(step.output) else None
            # The stream of the last model may be read after the request's span has ended, and fail then.
            error = _error_of(read.span) or (None if last is None else _error_of(last.span))
            if error is not None:
                step.output = OPAQUE
                tree.fail(step, time_ns, error)
            elif isinstance(step, ModelStep):
                tree.end(step, time_ns, models[read])
            else:
                said = None if last is None or read.is_bare else models[last]
                tree.end(step, time_ns, said or step.output)
    return tree


def _moments(spans: Sequence[ReadSpan]) -> list[tuple[int, ReadSpan, bool]]:
    """The starts and ends of the steps in order of time; those of one time in the order of the spans."""
    starts: dict[ReadSpan | None, int] = {None: 0}
    moments: list[tuple[int, ReadSpan, bool]] = []
    going_on: list[ReadSpan] = []
    for read in (*spans, None):
        while going_on and (read is None or going_on[-1] is not read.outer):
            over = going_on.pop()
            moments.append((max(starts[over], over.span.end_ns), over, True))
        if read is not None:
            starts[read] = max(read.span.start_ns, starts[read.outer])
            moments.append((starts[read], read, False))
            going_on.append(read)
    return sorted(moments, key=itemgetter(0))


def _asked(spans: Sequence[ReadSpan]) -> Snapshot:
    """What a request was called with whose span does not say it: what its first model or search was given."""
    first = min((read for read in spans if isinstance(read.step, (ModelStep, SearchStep))), key=_start_of, default=None)
    if first is None or first.model is None:
        return OPAQUE if first is None or first.step.inputs is None else first.step.inputs
    return next((part.text for part in reversed(first.model.messages) if part.role == "human"), OPAQUE)


def _written_beside(spans: Sequence[ReadSpan]) -> list[Document]:
    """Tell the documents found how LlamaIndex writes them, with their metadata; texts that no search found are others."""
    found = [document for read in spans for document, _ in read.found or ()]
    for document in found:
        lines = "\n".join(f"{key}: {value}" for key, value in document.metadata.items())
        document.written = f"{lines}\n\n{document.text}" if lines else None
    inputs = [read.chain.inputs for read in spans if isinstance(read.chain.inputs, dict)]
    chunks = [one for each in inputs for key in _CHUNKS if isinstance(each.get(key), list) for one in each[key]]
    given = dict.fromkeys(one for one in chunks if isinstance(one, str) and one.strip())
    texts = given if len(found) * sum(map(len, given)) < _MAX_COMPARED else ()
    return [Document(each, None, {}) for each in texts if not any(one.text in each for one in found if one.text)]


def _says_nothing(payload: Snapshot) -> bool:
    """Whether a payload holds objects that nobody can read, and nothing else."""
    if isinstance(payload, (dict, list)):
        return bool(payload) and all(map(_says_nothing, payload.values() if isinstance(payload, dict) else payload))
    return isinstance(payload, Opaque)


def _error_of(span: TracedSpan) -> ErrorReport | None:
    """The error that ended a span. A graph that waits for a person has one, too, though it has not failed."""
    exception = next((event.attributes for event in reversed(span.events) if event.name == "exception"), {})
    kind = text_of(exception, ["exception.type"]) or text_of(span.attributes, ["error.type"])
    if not span.status_error and (kind or "").rpartition(".")[2] not in INTERRUPTS:
        return None
    if kind is None:
        match = _error_type.match(span.status_message)
        kind = match[0] if match else "Error"
    message = text_of(exception, ["exception.message"]) or span.status_message
    return ErrorReport(type=kind, message=message[:MAX_MESSAGE])
