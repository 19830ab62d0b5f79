"""Makes the record of a request from its log, in the worker: what its events left for later is read, and the rest is common.

What only LlamaIndex says of a request is added here: an agent and its name, errors that the framework swallowed, the grounds of
contexts that were themselves answers, what its reader got of a stream, and the run that an interrupted one goes on from.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from typing import Any

from ragspan.capturing import Event, EventKind, Opaque, RequestLog, RunKey, TokenStream
from ragspan.messages import NotedError
from ragspan.records import RagRecord, RetrievedContext
from ragspan.request import (
    Document,
    FilledPrompt,
    ModelStart,
    ModelStep,
    PayloadMessage,
    RequestTree,
    RerankStep,
    SearchStart,
    SearchStep,
    SeenDocuments,
    Step,
    SynthesisStart,
    SynthesisStep,
    context_of_seen,
    contexts_behind,
    documents_in,
    originals_of,
    record_of,
    texts_in,
    tree_of,
)
from ragspan_llama_index.classes import UUID_LENGTH
from ragspan_llama_index.files import File
from ragspan_llama_index.nodes import text_shown
from ragspan_llama_index.streams import Stream

_UNNAMED = {None, "", "Agent"}  # the last is the framework's default
_NO_ERRORS = frozenset({"CancelledError", "GeneratorExit", "StopIteration", "StopAsyncIteration", "WaitingForEvent"})
"""Errors that steer a workflow; nobody hides them from anybody."""


def record_of_log(log: RequestLog) -> RagRecord | None:
    """The record of a finished request; None when nothing was answered."""
    read = _with_beginning(log)
    tree = _tree_of(read)
    about = log.about
    if "asked" in about and isinstance(tree.inputs, (Opaque, list)):
        tree.inputs = about["asked"]
    if about.get("is_run") and tree.noted is None and not tree.output:
        tree.output = _last_streamed(tree)  # it gave its answer as events
    record = record_of(tree)
    if record is None:
        return None
    if record.status != "complete":
        record = replace(record, response=about["awaited"].text() if "awaited" in about else None)
    is_agent = record.is_agent or bool(about.get("is_agent"))
    errors = [event.payload.name for event in read.history if event.kind is EventKind.ERROR]
    given = [pair for step in tree.all_of(SynthesisStep)[-1:] for found in documents_in(step.inputs) for pair in found]
    return replace(
        record,
        contexts=record.contexts and tuple(_as_given(record.contexts, given)),
        evidence=originals_of(record.contexts or (), _answers_in(tree, record.question)),
        is_agent=is_agent,
        name=about["agent_name"] if is_agent and about.get("agent_name") not in _UNNAMED else record.name,
        swallowed_errors=tuple(name for name in dict.fromkeys(errors) if name not in _NO_ERRORS)
        if record.status == "complete"
        else (),
    )


def tree_inside(log: RequestLog, around: Mapping[RunKey, Step]) -> RequestTree:
    """The tree of what happened inside another framework's request, by the steps around its outermost ones."""
    return _tree_of(_read(log), around)


def _tree_of(log: RequestLog, around: Mapping[RunKey, Step] | None = None) -> RequestTree:
    """The tree, with the prompts that templates were filled for; a synthesizer without nodes asks nobody."""
    tree = tree_of(log, around)
    models = tree.all_of(ModelStep)
    for step in list(tree.steps):
        if isinstance(step.output, FilledPrompt) and not step.output.messages and step.parent is not None:
            messages = [part for model in models if model.is_within(step.parent) for part in model.messages]
            step.output.messages = messages or [PayloadMessage("human", "\n\n".join(texts_in(step.inputs)))]
        elif (
            isinstance(step, SynthesisStep) and step.inputs == [] and not any(model.is_within(step) for model in models)
        ):
            tree.found_nothing = True
            filtered = RerankStep(name="", parent=step, started_ns=step.started_ns, is_filter=True)
            tree.end(tree.begin(filtered), step.ended_ns, [])
    return tree


def _as_given(
    contexts: Iterable[RetrievedContext], given: Sequence[tuple[Document, float | None]]
) -> Iterator[RetrievedContext]:
    """Contexts with the scores that a synthesizer was given; one that it was given twice stands twice in the prompt."""
    for context in contexts:
        scores = [score for document, score in given if context.text in (document.text, document.written)]
        yield from (replace(context, score=score) for score in scores or [context.score])


def _last_streamed(tree: RequestTree) -> str | None:
    said = (step.said for step in reversed(tree.answering_models) if step.tokens)
    return next(filter(None, said), None)


def _answers_in(
    tree: RequestTree, question: str | None
) -> Iterator[tuple[str, Callable[[], Iterable[RetrievedContext] | None]]]:
    """What earlier steps answered. A single word of a model, a grade or a choice, stands anywhere and is none."""
    seen = cache(lambda: SeenDocuments(tree))

    def contexts_of(models: list[ModelStep]) -> Iterable[RetrievedContext] | None:
        return contexts_behind(tree, seen(), question, models, context_of_seen)

    models = tree.answering_models
    for step in tree.steps:
        if isinstance(step, ModelStep):
            if " " in step.said.strip():
                yield step.said.strip(), partial(contexts_of, [step])
        elif type(step) in (Step, SynthesisStep) and step.parent is not None and isinstance(step.output, str):
            inner = [model for model in models if model.is_within(step)]
            if inner and step.output.strip():
                yield step.output.strip(), partial(contexts_of, inner[-1:])


# What the events left for later


def _read(log: RequestLog) -> RequestLog:
    """The log with texts in place of streams and files, and with nodes as the framework writes them."""
    read = copy.copy(log)
    read.about = {**log.about, "framework": "llama_index", "run_type": "engine", "delivered": "awaited" in log.about}
    read.earlier = ()
    history = log.history
    read.streams = {**log.streams, **_streams_of_models(history)}
    starts = {event.run: event for event in history if event.kind is EventKind.START}
    left_out = set(_only_handing_on(history))
    left_out |= {
        event.run for event in history if event.kind is EventKind.END and _found_tools(event, starts.get(event.run))
    }
    known = {
        document.text: document for event in history for found in documents_in(event.payload) for document, _ in found
    }
    written: set[RunKey] = set()
    events: list[Event] = []
    for event in history:
        kind, run, payload, about = event.kind, event.run, event.payload, event.about
        if run in left_out:
            continue
        if kind is EventKind.START:
            if isinstance(about, SynthesisStart):  # texts that a program handed over
                payload = [
                    known.get(each) or Document(each, None, {}) if isinstance(each, str) else each for each in payload
                ]
                starts[run] = event._replace(payload=payload)
            else:
                payload = _without_files(payload)
        elif kind is EventKind.FILLED:
            if run not in written:
                _note_written(starts.get(run), payload)
                written.add(run)
            payload = {str(place): text for place, text in enumerate(payload)}
        elif kind is EventKind.REREAD:
            for document, text, template in payload:
                if template is not None and document.written is None:
                    document.written = text_shown(text, document.metadata, template)
            payload = [(document, text) for document, text, _ in payload]
        elif kind is EventKind.READ and (stream := read.streams.get(run)) is not None:
            payload.content = "".join(text for text in stream.tokens if isinstance(text, str)) or payload.content
        elif isinstance(payload, Stream):
            stream, payload = payload, payload.text()
            if run == log.root and (stream.aborted or stream.noted is not None):
                kind, payload = EventKind.ERROR, stream.noted or NotedError(GeneratorExit, "", ())
        events.append(Event(kind, run, event.parent, event.time_ns, payload, about))
    read.events = [tuple(event) for event in events]
    return read


def _streams_of_models(history: Iterable[Event]) -> dict[RunKey, TokenStream]:
    """Of the models that stream the answer of a synthesis: what its reader got of it; their own words are not noted."""
    parents: dict[RunKey, RunKey | None] = {}
    models: list[RunKey] = []
    answers: dict[RunKey, Stream] = {}
    for event in history:
        if event.kind is EventKind.START:
            parents[event.run] = event.parent
            models += [event.run] if isinstance(event.about, ModelStart) else []
        elif event.kind is EventKind.END:
            models = [run for run in models if run != event.run]  # it did not stream
            if isinstance(event.payload, Stream):
                answers[event.run] = event.payload
    found: dict[RunKey, TokenStream] = {}
    for model in models:
        around = parents.get(model)
        while around is not None and around not in answers:
            around = parents.get(around)
        if around is not None and answers[around].tokens:
            found = {run: stream for run, stream in found.items() if stream is not answers[around]}
            found[model] = answers[around]
    return found


def _only_handing_on(history: Iterable[Event]) -> Iterator[RunKey]:
    """The calls of asynchronous streams that only read a synchronous one, as the framework's defaults do."""
    models = [event for event in history if event.kind is EventKind.START and isinstance(event.about, ModelStart)]
    for outer, inner in pairwise(models):
        method = str(inner.run)[len(inner.about.name) + 1 : -UUID_LENGTH]
        if method.startswith("stream") and str(outer.run).startswith(f"{inner.about.name}.a{method}-"):
            yield outer.run


def _found_tools(end: Event, start: Event | None) -> bool:
    """Whether a search found tools, among which an agent chooses, and no documents."""
    if start is None or not isinstance(start.about, SearchStart):
        return False
    found = [document for documents in documents_in(end.payload) for document, _ in documents]
    return bool(found) and all(
        each.text.startswith(f"Tool name: {each.metadata.get('name')}\nTool description: ") for each in found
    )


def _note_written(start: Event | None, texts: list[str]) -> None:
    """A synthesizer wrote each of its nodes so."""
    given = start.payload if start is not None and isinstance(start.about, SynthesisStart) else ()
    if len(given) == len(texts):
        for each, text in zip(given, texts, strict=True):
            document = each[0] if isinstance(each, list) else each
            document.written = text if text != document.text else None


def _without_files(payload: Any) -> Any:
    """Messages with the texts of their files; of those that are no text, only that they are there is kept."""
    if isinstance(payload, dict):
        return {name: _without_files(value) for name, value in payload.items()}
    if isinstance(payload, list):
        return list(map(_without_files, payload))
    if not isinstance(payload, PayloadMessage) or isinstance(payload.content, str):
        return payload
    read = [(each, each.text() if isinstance(each, File) else each) for each in payload.content]
    unread = [each.end for each, text in read if isinstance(each, File) and text is None]
    return replace(payload, content="\n".join(text for _, text in read if text is not None), unread=unread)


# Runs that were interrupted


def _with_beginning(log: RequestLog) -> RequestLog:
    """The log, with the runs that it goes on from.

    The saved context of a run does not name it. Its beginning is recognised by texts that appear again in a prompt or in the
    answer: its question, a node that it found, or words that it wrote.
    """
    read = _read(log)
    if log.earlier:
        tree = tree_of(read)
        shown = "\n".join(part.text for step in tree.all_of(ModelStep) for part in step.messages)
        shown += "\n" + "\n".join(texts_in(tree.output))
        rated = [(_signs_of(tree_of(_read(each)), tree.name, shown), each) for each in log.earlier]
        most = max(signs for signs, _ in rated)
        if most:
            beginning = _with_beginning([each for signs, each in rated if signs == most][-1])
            read.earlier = (*beginning.earlier, beginning)
    return read


def _signs_of(beginning: RequestTree, name: str, shown: str) -> int:
    if beginning.name != name:
        return 0
    found = (each for step in beginning.all_of(SearchStep) for pairs in documents_in(step.output) for each, _ in pairs)
    said = (step.said for step in beginning.all_of(ModelStep))
    return (
        any(each.text.strip() and each.text in shown for each in found)
        + any(text.strip() and text in shown for text in texts_in(beginning.inputs))
        + any(" " in text and text in shown for text in said)
    )
