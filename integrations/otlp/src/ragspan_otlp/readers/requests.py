"""Makes the record of a request's steps.

By the rule that the handlers have: the steps become a log of runs, and `ragspan.runs` makes the record of it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ragspan.capturing.log import Event, RequestLog
from ragspan.capturing.snapshots import OPAQUE, Opaque, Snapshot
from ragspan.matching import PromptText
from ragspan.record_json import plain_entries
from ragspan.records import RagRecord, Reranking, RetrievedContext, SpanAnchor
from ragspan.runs import record_of
from ragspan.runs.payloads import Document, Message
from ragspan.runs.trace import INTERRUPT
from ragspan.step_texts import ToldError
from ragspan_otlp.readers.payloads import text
from ragspan_otlp.readers.steps import Placed, Scored, Step
from ragspan_otlp.traces import TracedSpan

_MAX_OF_A_KIND = 100
_MAX_WRITTEN = 1000
_MAX_PROMPTS = 2_000_000
_MAX_ORIGINS = 1000
_MAX_COMPARED = 10_000_000
_SYNTHESIS = (".synthesize", ".asynthesize")
_BARE = frozenset({"model", "retriever", "reranker", "tool"})
_error_type = re.compile(r"[A-Za-z_][\w.]{0,200}(?=[(:]|$)")


class Request:
    """The steps of one request, each after the one that is around it.

    Args:
        places: the root first; of a group, which has no root, all of its tops.
        span: of a group, the span that is around it.
    """

    def __init__(self, places: Sequence[Placed], span: TracedSpan | None = None) -> None:
        self._grouped = span is not None
        self.span = span or places[0].step.span
        _settle_kinds(places)
        _take_payloads_of_only_chain(places)
        missing = _model_without_span(places)
        self._places = [*places, *missing]
        self._is_left = _leave_streams_open(places) or bool(missing)
        self._models = [place.step for place in self._places if place.step.kind == "model"]
        self._framework = next((place.step.framework for place in places if place.step.framework), "otlp")
        self._prompts = "\n".join(part.prompt_text for step in self._models for part in step.prompt)[:_MAX_PROMPTS]

    def record(self) -> RagRecord | None:
        """The record; None where nothing was answered."""
        root = self._places[0].step
        is_answer = root.framework == "langchain" or root.span.name.endswith(_SYNTHESIS)
        if not is_answer and all(place.step.kind not in _BARE for place in self._places):
            return None  # a splitter of texts, say
        record = record_of(self._log())
        if record is None:
            return None
        contexts = self._brought() if self._has_unseen_prompt(record.status) else record.contexts
        origins = _Origins(self._places)
        return replace(
            record,
            contexts=contexts if contexts is None else tuple(map(origins.of, contexts)),
            rerankings=record.rerankings or self._rerankings(),
            is_agent=record.is_agent or any(place.step.kind == "agent" for place in self._places),
            evidence=self._evidence(record),
            swallowed_errors=self._swallowed() if record.status == "complete" else (),
        )

    # The log

    def _log(self) -> RequestLog:
        log, steps = RequestLog(grouped=self._grouped), [place.step for place in self._places]
        log.root = None if self._grouped else id(self._places[0])
        log.started_ns, log.ended_ns = self.span.start_ns, max(self.span.start_ns, self.span.end_ns)
        log.anchor = anchor_of(self.span)
        metadata = dict(next((step.metadata for step in steps if step.metadata), {}))
        for step in reversed(steps):
            ids = {"session_id": step.session_id, "user_id": step.user_id}
            metadata |= {key: value for key, value in ids.items() if value is not None}
        log.about = {
            "framework": self._framework,
            "run_type": "parser" if steps[0].name.endswith("Parser") else None,
            "tags": tuple(dict.fromkeys(tag for step in steps for tag in step.tags)),
            "metadata": metadata,
        }
        log.events = [tuple(event) for event in self._events()]
        return log

    def _events(self) -> Iterator[Event]:
        """Starts and ends in order of time; those of one time in the order of the spans."""
        inside: dict[int, list[Placed]] = defaultdict(list)
        starts: dict[int, int] = {}
        for place in self._places:
            outer = id(place.outer)
            starts[id(place)] = max(place.step.span.start_ns, starts.get(outer, 0))
            inside[outer].append(place)
        events: list[Event] = []
        waiting = [(place, False) for place in self._tops()]
        while waiting:
            place, is_over = waiting.pop()
            start = starts[id(place)]
            if is_over and not place.step.has_ended:
                continue
            if is_over:
                events.append(self._end(place, max(start, place.step.span.end_ns)))
            else:
                events.append(self._start(place, start))
                later = sorted(inside[id(place)], key=lambda inner: -starts[id(inner)])
                waiting += [(place, True), *((inner, False) for inner in later)]
        written = [Document(each, None, {}) for each in self._written()]
        if written:  # the root's start comes first in any case
            first = events[0]
            events.insert(1, Event("chain", 0, first.run, first.time_ns, {"documents": written}, {"name": ""}))
        yield from sorted(events, key=lambda event: event.time_ns)

    def _tops(self) -> list[Placed]:
        tops = [place for place in self._places if place.outer is None]
        return sorted(tops, key=lambda place: -place.step.span.start_ns)

    def _start(self, place: Placed, time_ns: int) -> Event:
        step = place.step
        kind, payload = "chain", step.inputs
        about: dict[str, Any] = {"name": step.name}
        if step.kind == "model":
            kind, payload = "model", list(step.prompt)
            about |= {"model": step.model, "provider": step.provider, "documents": step.beside, "rewritten": ()}
        elif step.kind == "retriever":
            kind, payload = "retriever", step.query
            known = {"top_k": step.top_k, "data_source_id": step.source}
            about |= {"metadata": known, "span": anchor_of(step.span)}
        elif step.kind == "tool":
            kind = "tool"
            about |= {"call_id": step.call_id or getattr(step.output, "call_id", None)}
        elif place.outer is None and isinstance(payload, Opaque) and self._framework != "langchain":
            payload = self._asked()
        outer = None if place.outer is None else id(place.outer)
        return Event(kind, id(place), outer, time_ns, payload, about)

    def _end(self, place: Placed, time_ns: int) -> Event:
        step, payload = place.step, place.step.output
        about: Any = None
        is_unread = place.outer is None and _says_nothing(payload)
        last = self._last_model() if is_unread else None
        error = error_of(step.span) or (
            last and error_of(last.span)
        )  # of a stream that was read behind the request's span
        if self._is_left and place.outer is None:  # as of a stream
            about = step.inputs
        if error is not None:
            return Event("error", id(place), None, time_ns, error, about)
        if step.kind == "model":
            payload, about = step.reply or Message("ai"), [step.told]
        elif step.kind in {"retriever", "reranker"}:
            payload = OPAQUE if step.found is None else [list(pair) for pair in step.found]
        elif last is not None and last.reply is not None:
            payload = last.reply
        return Event("end", id(place), None, time_ns, payload, about)

    def _asked(self) -> Snapshot:
        """What the request was called with, where its span does not say: what its first model or search was given."""
        first = min(
            (place.step for place in self._places if place.step.kind in {"model", "retriever"}),
            key=lambda step: step.span.start_ns,
            default=None,
        )
        if first is None or first.kind == "retriever":
            return OPAQUE if first is None or first.query is None else first.query
        return next((part.text for part in reversed(first.prompt) if part.role == "human"), OPAQUE)

    def _last_model(self) -> Step | None:
        """The model whose words the caller got, where the request's span does not say."""
        models = [place.step for place in self._places if place.step.kind == "model" and not place.is_in("retriever")]
        return max(models, key=lambda step: step.span.end_ns, default=None)

    # Documents

    def _written(self) -> list[str]:
        """Documents as they stand in prompts with their metadata before them, as LlamaIndex writes them."""
        found = (document for place in self._places for document, _ in place.step.found or ())
        shown = dict.fromkeys(f"{_lines_of(document)}\n\n{document.text}" for document in found if document.metadata)
        if self._framework != "langchain":  # whose steps have documents for documents: a text is none
            shown |= dict.fromkeys(each for place in self._places for each in place.step.written)
        return _without_joined([each for each in list(shown)[:_MAX_WRITTEN] if each.strip() and each in self._prompts])

    def _has_unseen_prompt(self, status: str) -> bool:
        """Whether a model may have answered whose prompt nobody shows; one that has not ended has no span."""
        if self._models:
            return not self._prompts.strip()
        return status != "complete" or not any(place.step.shows_models for place in self._places)

    def _brought(self) -> tuple[RetrievedContext, ...] | None:
        """What the last reranker left, else what all searches brought, in their order; None where that is unknown."""
        ends = [place.step for place in self._places if place.step.kind == "reranker" and place.step.found is not None]
        if not ends:
            searches = [place for place in self._places if place.step.kind == "retriever"]
            ends = [place.step for place in searches if not place.is_in("retriever")]
        known = [[] if error_of(step.span) else step.found for step in ends]
        found = known[-1:] if ends and ends[-1].kind == "reranker" else known
        if not found or any(each is None for each in found):
            return None
        return tuple({each.text: each for one in found for each in _ordered(one or ())}.values())

    def _evidence(self, record: RagRecord) -> tuple[RetrievedContext, ...]:
        """Of contexts that are the words of earlier models, the documents that stood in the prompts of these."""
        known = [search.contexts for search in record.retrievals]
        documents = {context.text: context for contexts in known[:_MAX_OF_A_KIND] for context in contexts}
        generated = [context.text for context in record.contexts or () if not _is_of(context.text, documents)]
        found: dict[str, RetrievedContext] = {}
        for step in self._models[:_MAX_OF_A_KIND] if generated else ():
            said = "" if step.reply is None else step.reply.text.strip()
            if said and any(said in text for text in generated):
                prompt = "\n".join(part.prompt_text for part in step.prompt)
                matches = PromptText(prompt).find(list(documents), excerpts=False)
                pairs = zip(documents.values(), matches, strict=True)
                found |= {document.text: document for document, match in pairs if match is not None}
        return tuple(found.values())

    def _rerankings(self) -> tuple[Reranking, ...]:
        """Of what puts documents in order; what only filters them has another name."""
        ordering = [place.step for place in self._places if place.step.kind == "reranker"]
        steps = [step for step in ordering if "rank" in step.name.lower()][:_MAX_OF_A_KIND]
        return tuple(
            Reranking(
                name=step.name,
                query=step.query,
                started_ns=step.span.start_ns,
                ended_ns=step.span.end_ns,
                given=_ordered(step.given),
                contexts=_ordered(step.found or ()),
                model=step.model,
                top_k=step.top_k,
                error_type=error.name if (error := error_of(step.span)) else None,
            )
            for step in steps
        )

    def _swallowed(self) -> tuple[str, ...]:
        """The errors that a framework made an answer of; of LangChain they are retries, which handlers do not count."""
        if self._framework == "langchain":
            return ()
        errors = (error_of(place.step.span) for place in self._places[1:])
        return tuple(dict.fromkeys(error.name for error in errors if error is not None))


def _take_payloads_of_only_chain(places: Sequence[Placed]) -> None:
    """Some instrumentations put a span without payloads around that of the chain."""
    root, inside = places[0].step, [place.step for place in places if place.outer is places[0]]
    if len(inside) == 1 and inside[0].kind == "chain" and root.kind in {"chain", "agent"}:
        root.inputs = inside[0].inputs if isinstance(root.inputs, Opaque) else root.inputs
        root.output = inside[0].output if isinstance(root.output, Opaque) else root.output


def _leave_streams_open(places: Sequence[Placed]) -> bool:
    """Note the models that LangChain's request did not wait for: a reader left their stream, and their spans end later."""
    root = places[0].step
    if root.framework != "langchain" or root.kind in _BARE:
        return False
    models = [
        place.step for place in places if place.step.kind == "model" and place.step.span.end_ns > root.span.end_ns
    ]
    left = [step for step in models if step.reply is None or step.reply.text != root.output]
    for step in left:
        step.has_ended = False
    return bool(left)


def _model_without_span(places: Sequence[Placed]) -> list[Placed]:
    """The model behind a prompt that was filled in, where no span of a model follows: its stream was left."""
    place = max((each for each in places if each.step.made_prompt), key=_start_of, default=None)
    models = [_start_of(each) for each in places if each.step.kind == "model"]
    if place is None or place.outer is None or max(models, default=0) >= _start_of(place):
        return []
    model = Step(span=place.step.span, kind="model", name="model", prompt=place.step.made_prompt, has_ended=False)
    return [Placed(step=model, outer=place.outer, depth=place.depth)]


def _start_of(place: Placed) -> int:
    return place.step.span.start_ns


def _says_nothing(payload: Snapshot) -> bool:
    """Whether a payload holds objects that nobody can read, and nothing else."""
    items = payload.values() if isinstance(payload, dict) else payload
    if isinstance(payload, (dict, list)):
        return bool(payload) and all(map(_says_nothing, items))
    return isinstance(payload, Opaque)


def _settle_kinds(places: Sequence[Placed]) -> None:
    """Count what several spans tell of once: a model's call with the client's inside it, a search with its own inner part.

    Of a model's spans the outermost that has the prompt counts.
    """
    has_prompts = any(place.step.prompt for place in places)
    for place in reversed(places):
        step = place.step
        if step.kind == "retriever" and step.found is None and place.is_in("retriever"):
            step.kind = "chain"
        elif step.kind == "model":
            outer = [each.step for each in place.around() if each.step.kind == "model"]
            if any(each.prompt for each in outer) or (not step.prompt and (has_prompts or outer)):
                step.kind = "chain"
                continue
            for each in reversed(outer):
                each.kind = "chain"
                if each.reply is not None and (step.reply is None or not step.reply.text):
                    step.reply = Message("ai", each.reply.text, step.reply.calls if step.reply else None)


class _Origins:
    """Tells of a context that was written for the model which document it is."""

    def __init__(self, places: Iterable[Placed]) -> None:
        self._found: dict[str, RetrievedContext] = {}
        for place in places:
            for context in _ordered(place.step.found or ()) if len(self._found) < _MAX_ORIGINS else ():
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
    return tuple(
        RetrievedContext(
            text=document.text,
            id=document.id,
            rank=rank,
            score=score,
            source=text(document.metadata.get("source")),
            metadata=plain_entries(document.metadata),
        )
        for rank, (document, score) in enumerate(found)
    )


def _without_joined(texts: list[str]) -> list[str]:
    """Without texts that several others were joined to, as LlamaIndex packs documents into its model's window."""
    if len(texts) * sum(map(len, texts)) > _MAX_COMPARED:
        return texts
    return [text for text in texts if sum(other in text for other in texts) <= 2]  # noqa: PLR2004  itself and one more


def _lines_of(document: Document) -> str:
    return "\n".join(f"{key}: {value}" for key, value in document.metadata.items())


def anchor_of(span: TracedSpan) -> SpanAnchor | None:
    """The span's identity; None where its ids are no hexadecimal numbers."""
    try:
        trace_id, span_id = int(span.trace_id, 16), int(span.span_id, 16)
    except ValueError:
        return None
    return SpanAnchor(trace_id=trace_id, span_id=span_id, trace_state=span.trace_state, is_remote=True)


def error_of(span: TracedSpan) -> ToldError | None:
    """The error that ended a span. A graph that waits for a person notes one, too, though it has not failed."""
    told: Any = next((event.attributes for event in reversed(span.events) if event.name == "exception"), {})
    kind = text(told.get("exception.type")) or text(span.attributes.get("error.type"))
    if not span.status_error and (kind or "").rpartition(".")[2] != INTERRUPT:
        return None
    if kind is None:
        match = _error_type.match(span.status_message)
        kind = match[0] if match else "Error"
    message = text(told.get("exception.message")) or span.status_message
    return ToldError(kind, message, text(told.get("exception.stacktrace")) or "")
