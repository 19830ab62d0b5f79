"""Makes the record of a request's steps: they become its tree, and `ragspan.runs` makes the record, as for the handlers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ragspan.capturing import OPAQUE, Opaque, Snapshot
from ragspan.messages import MAX_MESSAGE, MAX_STACKTRACE, ErrorReport
from ragspan.records import RagRecord, RetrievedContext, SpanAnchor
from ragspan.runs import (
    INTERRUPT,
    Document,
    ModelStep,
    PayloadMessage,
    PromptTexts,
    RequestTree,
    RerankStep,
    SearchStep,
    SeenDocument,
    Step,
    ToolStep,
    context_of,
    make_record,
)
from ragspan_receiver.readers.payloads import text
from ragspan_receiver.readers.steps import BARE, Scored, SpanStep
from ragspan_receiver.spans import TracedSpan

_MAX_OF_A_KIND = 100
_MAX_WRITTEN = 1000
_MAX_PROMPTS = 2_000_000
_MAX_ORIGINS = 1000
_MAX_COMPARED = 10_000_000
_SYNTHESIS = (".synthesize", ".asynthesize")
_error_type = re.compile(r"[A-Za-z_][\w.]{0,200}(?=[(:]|$)")


class Request:
    """The steps of one request.

    Args:
        steps: each after the one around it; of a group, which has no root, several are outermost.
        span: the span around a group.
    """

    def __init__(self, steps: Sequence[SpanStep], span: TracedSpan | None = None) -> None:
        self._grouped = span is not None
        self._span = span or steps[0].span
        _count_once(steps)
        _take_payloads_of_only_chain(steps)
        missing = _model_without_span(steps)
        self._steps = [*steps, *missing]
        self._was_left = _leave_streams_open(steps) or bool(missing)
        self._models = [step for step in self._steps if step.kind == "model"]
        self._framework = next((step.framework for step in steps if step.framework), "otlp")
        self._prompts = "\n".join(part.prompt_text for step in self._models for part in step.prompt)[:_MAX_PROMPTS]

    def record(self) -> RagRecord | None:
        """The record; None if nothing was answered."""
        root = self._steps[0]
        is_answer = root.framework == "langchain" or root.span.name.endswith(_SYNTHESIS)
        if not is_answer and all(step.kind not in BARE for step in self._steps):
            return None  # a splitter of texts, say
        record = make_record(self._tree())
        if record is None:
            return None
        contexts = self._brought() if self._has_unseen_prompt(record.status) else record.contexts
        origins = _Origins(self._steps)
        return replace(
            record,
            record_id=f"{self._span.trace_id}{self._span.span_id}",
            contexts=contexts if contexts is None else tuple(map(origins.of, contexts)),
            is_agent=record.is_agent or any(step.kind == "agent" for step in self._steps),
            evidence=self._evidence(record),
            swallowed_errors=self._swallowed() if record.status == "complete" else (),
        )

    # The tree

    def _tree(self) -> RequestTree:
        metadata = dict(next((step.metadata for step in self._steps if step.metadata), {}))
        for step in reversed(self._steps):
            ids = {"session_id": step.session_id, "user_id": step.user_id}
            metadata |= {key: value for key, value in ids.items() if value is not None}
        tree = RequestTree(
            started_ns=self._span.start_ns,
            ended_ns=max(self._span.start_ns, self._span.end_ns),
            framework=self._framework,
            run_type="parser" if self._steps[0].name.endswith("Parser") else None,
            tags=tuple(dict.fromkeys(tag for step in self._steps for tag in step.tags)),
            metadata=metadata,
            anchor=_anchor_of(self._span),
            grouped=self._grouped,
        )
        made: dict[SpanStep | None, Step | None] = {None: None}
        for time_ns, step, is_over in self._moments():
            own = made.get(step)
            if own is not None and is_over:
                self._end(tree, step, own, time_ns)
                continue
            made[step] = tree.begin(self._made(step, made[step.outer], time_ns))
            if len(made) == 2:  # noqa: PLR2004  the first one
                written = [Document(each, None, {}) for each in self._written()]
                shown = Step(name="", parent=made[step], started_ns=time_ns, inputs={"documents": written})
                if written:
                    tree.end(tree.begin(shown), time_ns)
        return tree

    def _moments(self) -> list[tuple[int, SpanStep, bool]]:
        """The starts and ends of the steps in order of time; those of one time in the order of the spans."""
        inside: dict[SpanStep | None, list[SpanStep]] = defaultdict(list)
        starts: dict[SpanStep | None, int] = {None: 0}
        for step in self._steps:
            starts[step] = max(step.span.start_ns, starts[step.outer])
            inside[step.outer].append(step)
        moments: list[tuple[int, SpanStep, bool]] = []
        waiting = [(step, False) for step in sorted(inside[None], key=lambda step: -step.span.start_ns)]
        while waiting:
            step, is_over = waiting.pop()
            if not is_over:
                moments.append((starts[step], step, False))
                later = sorted(inside[step], key=lambda inner: -starts[inner])
                waiting += [(step, True), *((inner, False) for inner in later)]
            elif step.has_ended:
                moments.append((max(starts[step], step.span.end_ns), step, True))
        return sorted(moments, key=lambda moment: moment[0])

    def _made(self, step: SpanStep, parent: Step | None, time_ns: int) -> Step:
        around: dict[str, Any] = {"name": step.name, "parent": parent, "started_ns": time_ns}
        if step.kind == "model":
            made = ModelStep(
                model=step.model, provider=step.provider, inputs=list(step.prompt), beside=step.beside, **around
            )
            made.provider_metadata = [step.provider_metadata]
            return made
        if step.kind == "retriever":
            known = {"top_k": step.top_k, "data_source_id": step.source}
            return SearchStep(inputs=step.query, metadata=known, span=_anchor_of(step.span), **around)
        if step.kind == "tool":
            call_id = step.call_id or getattr(step.output, "call_id", None)
            return ToolStep(inputs=step.inputs, call_id=call_id, **around)
        if step.kind == "reranker" and "rank" in step.name.lower():  # what only filters has another name
            given, found = _seen(step.given), _seen(step.found or ())
            about: dict[str, Any] = {"query": step.query, "model": step.model, "top_k": step.top_k}
            return RerankStep(inputs=step.inputs, given=given, found=found, **about, **around)
        inputs = step.inputs
        if step.outer is None and isinstance(inputs, Opaque) and self._framework != "langchain":
            inputs = self._asked()
        return Step(inputs=inputs, **around)

    def _end(self, tree: RequestTree, step: SpanStep, own: Step, time_ns: int) -> None:
        payload = step.output
        last = self._last_model() if step.outer is None and _says_nothing(payload) else None
        late = step.inputs if self._was_left and step.outer is None else None  # as of a stream
        # The stream of the last model may be read after the request's span has ended, and fail then.
        error = _error_of(step.span) or (None if last is None else _error_of(last.span))
        if error is not None:
            tree.fail(own, time_ns, error, late)
            return
        if step.kind == "model":
            payload = step.reply or PayloadMessage("ai")
        elif step.kind in {"retriever", "reranker"}:
            payload = OPAQUE if step.found is None else [list(pair) for pair in step.found]
        elif last is not None and last.reply is not None:
            payload = last.reply
        tree.end(own, time_ns, payload, late if step.kind in {"chain", "agent"} else None)

    def _asked(self) -> Snapshot:
        """What the request was called with, if its span does not say: what its first model or search was given."""
        asked = [step for step in self._steps if step.kind in {"model", "retriever"}]
        first = min(asked, key=_start_of, default=None)
        if first is None or first.kind == "retriever":
            return OPAQUE if first is None or first.query is None else first.query
        return next((part.text for part in reversed(first.prompt) if part.role == "human"), OPAQUE)

    def _last_model(self) -> SpanStep | None:
        """The model whose words the caller got, if the request's span does not say."""
        models = [step for step in self._models if not step.is_in("retriever")]
        return max(models, key=lambda step: step.span.end_ns, default=None)

    # Documents

    def _written(self) -> list[str]:
        """Documents as they are in prompts after their metadata, as LlamaIndex writes them."""
        found = (document for step in self._steps for document, _ in step.found or ())
        shown = dict.fromkeys(f"{_lines_of(document)}\n\n{document.text}" for document in found if document.metadata)
        if self._framework != "langchain":  # whose steps show documents as such: a text is none
            shown |= dict.fromkeys(each for step in self._steps for each in step.written)
        return _without_joined([each for each in list(shown)[:_MAX_WRITTEN] if each.strip() and each in self._prompts])

    def _has_unseen_prompt(self, status: str) -> bool:
        """Whether a model may have answered whose prompt is not in the spans; one that has not ended has no span."""
        if self._models:
            return not self._prompts.strip()
        return status != "complete" or not any(step.shows_models for step in self._steps)

    def _brought(self) -> tuple[RetrievedContext, ...] | None:
        """What the last reranker left, else what all searches found, in their order; None if that is unknown."""
        ends = [step for step in self._steps if step.kind == "reranker" and step.found is not None][-1:]
        ends = ends or [step for step in self._steps if step.kind == "retriever" and not step.is_in("retriever")]
        found = [() if _error_of(step.span) else step.found for step in ends]
        if not found or any(each is None for each in found):
            return None
        return tuple({each.text: each for one in found for each in _ordered(one or ())}.values())

    def _evidence(self, record: RagRecord) -> tuple[RetrievedContext, ...]:
        """Replace contexts that earlier models wrote by the documents in the prompts of these models."""
        known = [search.contexts for search in record.retrievals]
        documents = {context.text: context for contexts in known[:_MAX_OF_A_KIND] for context in contexts}
        generated = [context.text for context in record.contexts or () if not _is_of(context.text, documents)]
        found: dict[str, RetrievedContext] = {}
        for step in self._models[:_MAX_OF_A_KIND] if generated else ():
            said = "" if step.reply is None else step.reply.text.strip()
            if said and any(said in text for text in generated):
                prompt = "\n".join(part.prompt_text for part in step.prompt)
                matches = PromptTexts([prompt]).find(list(documents), excerpts=False, order=[0])
                pairs = zip(documents.values(), matches, strict=True)
                found |= {document.text: document for document, match in pairs if match}
        return tuple(found.values())

    def _swallowed(self) -> tuple[str, ...]:
        """The errors after which a framework answered all the same; with LangChain they are retries, which do not count."""
        errors = [] if self._framework == "langchain" else [_error_of(step.span) for step in self._steps[1:]]
        return tuple(dict.fromkeys(error.name for error in errors if error is not None))


def _count_once(steps: Sequence[SpanStep]) -> None:
    """Make chains of steps that several spans show: a model's call around the client's, a search around its own inner part.

    Of a model's spans the outermost that has the prompt counts.
    """
    has_prompts = any(step.prompt for step in steps)
    for step in reversed(steps):
        if step.kind == "retriever" and step.found is None and step.is_in("retriever"):
            step.kind = "chain"
        elif step.kind == "model":
            outer = [each for each in step.around() if each.kind == "model"]
            if any(each.prompt for each in outer) or (not step.prompt and (has_prompts or outer)):
                step.kind = "chain"
                continue
            for each in reversed(outer):
                each.kind = "chain"
                if each.reply is not None and (step.reply is None or not step.reply.text):
                    step.reply = PayloadMessage("ai", each.reply.text, step.reply.calls if step.reply else None)


def _take_payloads_of_only_chain(steps: Sequence[SpanStep]) -> None:
    """Some instrumentations put a span without payloads around that of the chain."""
    root, inside = steps[0], [step for step in steps if step.outer is steps[0]]
    if len(inside) == 1 and inside[0].kind == "chain" and root.kind in {"chain", "agent"}:
        root.inputs = inside[0].inputs if isinstance(root.inputs, Opaque) else root.inputs
        root.output = inside[0].output if isinstance(root.output, Opaque) else root.output


def _leave_streams_open(steps: Sequence[SpanStep]) -> bool:
    """Mark the models that LangChain's request did not wait for: a reader closed their stream, and their spans end later."""
    root = steps[0]
    if root.framework != "langchain" or root.kind in BARE:
        return False
    late = [step for step in steps if step.kind == "model" and step.span.end_ns > root.span.end_ns]
    left = [step for step in late if step.reply is None or step.reply.text != root.output]
    for step in left:
        step.has_ended = False
    return bool(left)


def _model_without_span(steps: Sequence[SpanStep]) -> list[SpanStep]:
    """The model behind a prompt that was filled in, if no span of a model follows: its stream was closed early."""
    made = max((step for step in steps if step.made_prompt), key=_start_of, default=None)
    if made is None or made.outer is None:
        return []
    if any(step.kind == "model" and _start_of(step) >= _start_of(made) for step in steps):
        return []
    return [
        SpanStep(span=made.span, kind="model", name="model", outer=made.outer, prompt=made.made_prompt, has_ended=False)
    ]


def _start_of(step: SpanStep) -> int:
    return step.span.start_ns


def _says_nothing(payload: Snapshot) -> bool:
    """Whether a payload holds objects that nobody can read, and nothing else."""
    items = payload.values() if isinstance(payload, dict) else payload
    if isinstance(payload, (dict, list)):
        return bool(payload) and all(map(_says_nothing, items))
    return isinstance(payload, Opaque)


class _Origins:
    """Finds the document behind a context, which a program may have rewritten for the model."""

    def __init__(self, steps: Iterable[SpanStep]) -> None:
        self._found: dict[str, RetrievedContext] = {}
        for step in steps:
            for context in _ordered(step.found or ()) if len(self._found) < _MAX_ORIGINS else ():
                self._found.setdefault(context.text, context)

    def of(self, context: RetrievedContext) -> RetrievedContext:
        if context.id is not None or context.metadata or context.text in self._found:
            return context
        inside = (origin for text, origin in self._found.items() if text.strip() and text in context.text)
        origin = max(inside, key=lambda each: len(each.text), default=None)
        return context if origin is None else replace(origin, text=context.text, truncated=context.truncated)


def _is_of(text: str, documents: Iterable[str]) -> bool:
    """Whether a text is a document, maybe with its metadata, or a part of one."""
    return any(text in document or document in text for document in documents if document.strip())


def _ordered(found: Iterable[Scored]) -> tuple[RetrievedContext, ...]:
    return tuple(context_of(document, rank=rank, score=score) for rank, (document, score) in enumerate(found))


def _seen(found: Iterable[Scored]) -> list[SeenDocument]:
    return [SeenDocument(document, None, score) for document, score in found]


def _without_joined(texts: list[str]) -> list[str]:
    """The texts, except those that are several others together, as LlamaIndex packs documents into its model's window."""
    if len(texts) * sum(map(len, texts)) > _MAX_COMPARED:
        return texts
    return [text for text in texts if sum(other in text for other in texts) <= 2]  # noqa: PLR2004  itself and one more


def _lines_of(document: Document) -> str:
    return "\n".join(f"{key}: {value}" for key, value in document.metadata.items())


def _anchor_of(span: TracedSpan) -> SpanAnchor | None:
    """The span's identity; None if its ids are not hexadecimal numbers."""
    try:
        trace_id, span_id = int(span.trace_id, 16), int(span.span_id, 16)
    except ValueError:
        return None
    return SpanAnchor(trace_id=trace_id, span_id=span_id, trace_state=span.trace_state, is_remote=True)


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
