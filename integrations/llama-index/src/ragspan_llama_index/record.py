"""Makes the record of a request from its log, in the worker: what its events left for later is read, and the rest is common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ragspan.capturing import Event, EventKind, RequestLog, RunKey, TokenStream
from ragspan.messages import LEFT
from ragspan.records import RagRecord, RetrievedContext
from ragspan.request import (
    Document,
    FilledPrompt,
    ModelStep,
    PayloadMessage,
    RequestTree,
    RerankStep,
    SeenDocuments,
    Step,
    StepStart,
    SynthesisStep,
    contexts_of_calls,
    documents_in,
    has_words,
    record_of,
    texts_in,
    tree_of,
    unescaped,
)
from ragspan.safe_copy import Opaque
from ragspan_llama_index.nodes import Template, text_shown
from ragspan_llama_index.streams import Stream

_START, _END, _ERROR = EventKind.START, EventKind.END, EventKind.ERROR  # members are slow to look up
_FILLED, _REREAD, _READ = EventKind.FILLED, EventKind.REREAD, EventKind.READ
_ENGINES = (Step, SynthesisStep)
_UNNAMED = {None, "", "Agent"}  # the last is the framework's default
_NO_ERRORS = frozenset({"CancelledError", "GeneratorExit", "StopIteration", "StopAsyncIteration", "WaitingForEvent"})
"""Errors that steer a workflow; nobody hides them from anybody."""


_Answers: TypeAlias = Mapping[str, Sequence[ModelStep]]
"""What earlier steps answered, with the calls that it comes from."""


def record_of_log(log: RequestLog) -> RagRecord | None:
    """The record of a finished request; None when nothing was answered."""
    tree, about = tree_inside(log), log.about
    if "asked" in about and isinstance(tree.inputs, (Opaque, list)):
        tree.inputs = about["asked"]
    if about.get("is_run") and tree.noted is None and not tree.output:  # it gave its answer as events
        said = (step.said for step in reversed(tree.answering_models) if step.tokens)
        tree.output = next(filter(None, said), None)
    in_block: list[str] = []
    if log.grouped:  # what engines answered, and the last model that was asked by itself: all may be in the answer
        top = [step for step in tree.steps if step.parent is None]
        in_block = [step.output for step in top if type(step) in _ENGINES and isinstance(step.output, str)]
        in_block += [step.said for step in top if isinstance(step, ModelStep)][-1:]
        tree.output = "\n".join(in_block) or tree.output
    record = record_of(tree)
    if record is None or (about.get("is_run") and not (record.response or tree.noted or tree.all_of(ModelStep))):
        return None  # a run that did other work: it read documents in, say
    response, is_complete = in_block[-1] if in_block else record.response, record.status == "complete"
    if not is_complete:
        response = about["awaited"].text() if "awaited" in about else None
    answers = _answers_in(tree)
    contexts = tuple(_as_given(record.contexts or (), tree, answers, response))
    is_agent = record.is_agent or bool(about.get("is_agent"))
    errors = dict.fromkeys([event[4].name for event in list(log.events) if event[0] is _ERROR])
    evidence = _originals_of(contexts, answers, tree, record.question)
    name = about["agent_name"] if is_agent and about.get("agent_name") not in _UNNAMED else record.name
    swallowed = tuple(name for name in errors if name not in _NO_ERRORS) if errors and is_complete else ()
    is_same = (response, name, is_agent) == (record.response, record.name, record.is_agent)
    if is_same and contexts == (record.contexts or ()) and not evidence and not swallowed:
        return record
    return replace(
        record,
        response=response,
        contexts=record.contexts and contexts,
        evidence=evidence,
        is_agent=is_agent,
        name=name,
        swallowed_errors=swallowed,
    )


def tree_inside(log: RequestLog, around: Mapping[RunKey, Step] | None = None) -> RequestTree:
    """The tree of what happened, also inside another framework's request, by the steps around its outermost ones.

    It has the prompts that templates were filled for; a synthesizer without nodes asks nobody.
    """
    streams = {**log.streams, **_streams_of_models(log.events)} if log.streams else log.streams
    tree = tree_of(log, around, events=_read(log, streams), streams=streams)
    tree.framework, tree.run_type, tree.delivered = "llama_index", "engine", "awaited" in log.about
    models = tree.all_of(ModelStep)
    prompts: dict[Step, list[PayloadMessage]] = {}
    for step in list(tree.steps):
        if isinstance(step.output, FilledPrompt) and not step.output.messages and step.parent is not None:
            if step.parent not in prompts:
                own = [part for model in models if model.is_within(step.parent) for part in model.messages]
                prompts[step.parent] = own
            step.output.messages = prompts[step.parent] or [PayloadMessage("human", "\n\n".join(texts_in(step.inputs)))]
        elif isinstance(step, SynthesisStep) and step.inputs == [] and not any(each.is_within(step) for each in models):
            tree.found_nothing = True
            filtered = RerankStep(name="", parent=step, started_ns=step.started_ns, is_filter=True)
            tree.end(tree.begin(filtered), step.ended_ns, [])
    return tree


def _as_given(
    contexts: Iterable[RetrievedContext], tree: RequestTree, answers: _Answers, response: str | None
) -> Iterator[RetrievedContext]:
    """Contexts as the last synthesizer was given them: with the scores, and twice where it was given one twice.

    Where it was given the answers of earlier calls, these are its contexts, and what they rest on is evidence behind them.
    """
    synthesis = next(reversed(tree.all_of(SynthesisStep)), None)
    if synthesis is None:
        yield from contexts
        return
    given = [pair for found in documents_in(synthesis.inputs) for pair in found]
    if synthesis.output == response and answers and any(each.text.strip() in answers for each, _ in given):
        handed = {text for document, _ in given for text in (document.text, document.written)}
        contexts = [context for context in contexts if context.text in handed] or contexts
    prompts: list[str] | None = None
    for context in contexts:
        own, pairs = context, [pair for pair in given if context.text in (pair[0].text, pair[0].written)]
        wide = pairs[0][0].written if pairs else None
        if wide and wide != context.text:
            if prompts is None:
                models = [model for model in tree.all_of(ModelStep) if model.is_within(synthesis)]
                prompts = [unescaped(part.text) for model in models for part in model.messages]
            if any(wide in each for each in prompts):
                own = replace(context, text=wide)  # where the framework writes a list of texts, with escapes
        for score in [score for _, score in pairs] or [own.score]:
            yield own if score == own.score else replace(own, score=score)


def _answers_in(tree: RequestTree) -> _Answers:
    """What earlier steps answered, each with the call that it comes from.

    A single word of a model, a grade or a choice, stands anywhere and is none.
    """
    models = tree.answering_models
    last_ns = max((model.started_ns for model in models), default=0)
    answers: dict[str, list[ModelStep]] = {}
    for step in tree.steps:
        if not 0 < step.ended_ns <= last_ns:
            continue  # it is the answer itself, or a part of it
        if isinstance(step, ModelStep):
            if has_words(said := step.said.strip(), 2):
                answers.setdefault(said, []).append(step)
        elif type(step) in _ENGINES and step.parent is not None and isinstance(step.output, str):
            inner = [model for model in models if model.is_within(step)]
            if inner and (said := step.output.strip()):
                answers.setdefault(said, []).append(inner[-1])
    return answers


def _originals_of(
    contexts: Iterable[RetrievedContext], answers: _Answers, tree: RequestTree, question: str | None
) -> tuple[RetrievedContext, ...]:
    """The contexts of those of these contexts that were themselves answers."""
    known = {context.text: context for context in contexts}
    all_texts = "\n".join(known)
    if not any(text in all_texts for text in answers):
        return ()  # as mostly
    given, waiting, leaves = set(known), list(known.values()), list[RetrievedContext]()
    seen: SeenDocuments | None = None
    read: dict[ModelStep, Sequence[RetrievedContext]] = {}  # what the prompts of these calls held
    for context in waiting:
        inner: list[RetrievedContext] = []
        for model in [model for text, models in answers.items() if text in context.text for model in models]:
            if model not in read:
                seen = seen or SeenDocuments(tree)
                read[model] = contexts_of_calls(tree, seen, question, [model]) or ()
            # A step's own context that happens to hold its answer was not made from it.
            inner += read[model] if all(each.text != context.text for each in read[model]) else ()
        if not inner and context.text not in given:
            leaves.append(context)
        waiting += [known.setdefault(each.text, each) for each in inner if each.text not in known]
    return tuple(leaves)


# What the events left for later


def _read(log: RequestLog, streams: Mapping[RunKey, TokenStream]) -> Iterator[tuple[Any, ...]]:
    """The events with texts in place of streams, and with nodes as the framework writes them."""
    given: dict[RunKey, Any] = {}  # what steps were given, until it is known how they write it
    for event in list(log.events):
        kind, run, parent, time_ns, payload, about = event
        if isinstance(payload, Stream):
            is_cut = run == log.root and (payload.aborted or payload.noted is not None)
            kind, payload = (_ERROR, payload.noted or LEFT) if is_cut else (kind, payload.text())
        elif kind is _START:
            if _kind_of(about) is SynthesisStep:
                given[run] = payload = _with_documents(payload, log)
        elif kind is _FILLED:
            _note_written(given.pop(run, None), payload)  # later it only packs or shortens them
        elif kind is _REREAD:
            payload = _with_templates(payload)
        elif kind is _READ and run in streams:
            tokens = [text for text in streams[run].tokens if isinstance(text, str)]
            payload.content = "".join(tokens) or payload.content
        yield kind, run, parent, time_ns, payload, about


def _kind_of(about: Any) -> type[Step]:
    """The kind of step that an event begins."""
    return about.kind if type(about) is StepStart else Step


def _with_documents(given: Sequence[Any], log: RequestLog) -> Sequence[Any]:
    """What a synthesizer was given: of texts that a program handed over, perhaps those of documents, these documents."""
    if not any(isinstance(one, str) for one in given):
        return given
    known = {each.text: each for event in list(log.events) for found in documents_in(event[4]) for each, _ in found}
    return [known.get(one) or Document(one, None, {}) if isinstance(one, str) else one for one in given]


def _note_written(given: Any, texts: Sequence[str]) -> None:
    """So a synthesizer writes each of its nodes for a model."""
    pairs = [pair for found in documents_in(given) for pair in found]
    for (document, _), text in zip(pairs, texts, strict=True) if len(pairs) == len(texts) else ():
        document.written = text


def _with_templates(reread: Sequence[tuple[Document, str, Template | None]]) -> list[tuple[Document, str]]:
    """Documents with their texts; where no synthesizer wrote one, its own template does."""
    for document, text, template in reread:
        if template is not None and document.written is None:
            document.written = text_shown(text, document.metadata, template)
    return [(document, text) for document, text, _ in reread]


def _streams_of_models(events: Iterable[Event]) -> dict[RunKey, TokenStream]:
    """Of the models that stream the answer of a synthesis: what its reader got of it; their own words are not noted."""
    parents: dict[RunKey, RunKey | None] = {}
    models: list[RunKey] = []
    answers: dict[RunKey, Stream] = {}
    for kind, run, parent, _, payload, about in list(events):
        if kind is _START:
            parents[run] = parent
            models += [run] if _kind_of(about) is ModelStep else []
        elif kind is _END:
            models = [one for one in models if one != run]  # it did not stream
            if isinstance(payload, Stream):
                answers[run] = payload
    found: dict[RunKey, TokenStream] = {}
    for model in models:
        around = parents.get(model)
        while around is not None and around not in answers:
            around = parents.get(around)
        if around is not None and answers[around].tokens:
            found = {run: stream for run, stream in found.items() if stream is not answers[around]}
            found[model] = answers[around]
    return found
