"""Makes the record of a request from its log; pure functions, for the worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from ragspan.capturing import RequestLog, RunKey
from ragspan.records import AnswerStatus, RagRecord
from ragspan.request import (
    ModelStep,
    PayloadMessage,
    RequestTree,
    SearchStep,
    Step,
    question_in,
    record_with,
    without_thoughts,
)
from ragspan_llama_index.classes import SPEAKING
from ragspan_llama_index.contexts import Provenance, speakers_in
from ragspan_llama_index.reading import Reading, seen_in
from ragspan_llama_index.streams import Stream

_MAX_NODES = 1_000
_AGENTS = ("BaseWorkflowAgent", "AgentWorkflow")
_UNNAMED = "Agent"  # the framework's default

# Errors that steer a workflow; nobody hides them from anybody.
_NO_ERRORS = frozenset({"CancelledError", "GeneratorExit", "StopIteration", "StopAsyncIteration", "WaitingForEvent"})


def record_of(log: RequestLog) -> RagRecord | None:
    """The record of a finished request; None when nothing was answered."""
    reading = Reading(log)
    join_beginning(reading)
    tree, root = reading.finish(), reading.facts_of(reading.root)
    root.answer = _answer_among(reading)
    status, question, response = _status_of(reading), _question(reading), _response(reading)
    if root.is_run and status == "complete" and not (response or tree.all_of(ModelStep)):
        return None  # it did other work: read documents in, say
    provenance = Provenance(reading, question)
    grounds = provenance.grounds(response)
    for search in tree.all_of(SearchStep):  # as they were when it ended, with the scores that it gave
        if search in reading.facts:
            search.found = seen_in(reading.facts[search].found or ())
    record = record_with(tree, grounds, question, response, status)
    is_agent = record.is_agent or (root.is_run and any(map(root.has_base, _AGENTS)))
    is_named = is_agent and isinstance(root.agent_name, str) and root.agent_name not in {"", _UNNAMED}
    return replace(
        record,
        evidence=provenance.evidence(grounds.contexts),
        is_agent=is_agent,
        name=root.agent_name if is_named else reading.root.name,
        swallowed_errors=_swallowed(reading) if status == "complete" else (),
    )


def tree_inside(log: RequestLog, around: Mapping[RunKey, Step]) -> RequestTree:
    """The tree of what happened inside another framework's request, by the steps around its outermost ones."""
    return Reading(log, around).finish()


# The user's words

_OBSERVATION = "Observation:"  # so a reasoning agent tells its model, as the user, what a tool gave


def asked_in(prompt: Sequence[PayloadMessage]) -> str | None:
    """What the user said last in a conversation that went on: a resumed agent does not get it again."""
    spoke = [place for place, part in enumerate(prompt) if part.role == "ai"]
    before = prompt[: spoke[-1]] if spoke else ()
    asked = [part.text for part in before if part.role == "human" and not part.text.startswith(_OBSERVATION)]
    return asked[-1] if asked else None


# Runs that were interrupted


def join_beginning(reading: Reading) -> None:
    """Put what a run did before it was interrupted in front of what it did after it.

    The saved context of a run does not name it. Its beginning is recognised by texts that appear again in a prompt or in the
    answer: its question, a node that it found, or words that it wrote.
    """
    earlier = reading.log.earlier
    shown = _shown(reading) if earlier else ""
    rated = [(_signs(each, shown), each) for each in map(Reading, earlier) if each.root.name == reading.root.name]
    most = max((signs for signs, _ in rated), default=0)
    if most == 0:
        return
    beginning = [each for signs, each in rated if signs == most][-1]
    join_beginning(beginning)
    beginning.finish()
    reading.continue_from(beginning)


def _shown(reading: Reading) -> str:
    prompts = [part.text for step in reading.steps for part in step.messages]
    return "\n".join([*prompts, reading.text_of(reading.root) or ""])


def _signs(reading: Reading, shown: str) -> int:
    found = (node.text for step in reading.steps for node in reading.facts[step].found or ())
    nodes = any(text.strip() and text in shown for text in islice(found, _MAX_NODES))
    question = any(text.strip() and text in shown for _, text in reading.facts_of(reading.root).asked)
    said = any((text := reading.text_of(step)) and " " in text and text in shown for step in reading.steps)
    return nodes + question + said


# Parts of the record


def _status_of(reading: Reading) -> AnswerStatus:
    awaited = reading.awaited
    if reading.aborted or (awaited is not None and (awaited.aborted or not awaited.over)):
        return "interrupted" if reading.is_interrupted else "aborted"
    return "complete" if reading.tree.noted is None else "error"


def _swallowed(reading: Reading) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in reading.problems if name not in _NO_ERRORS))


def _question(reading: Reading) -> str | None:
    root = reading.facts_of(reading.root)
    searched = [text for step in reading.steps if step is not reading.root for _, text in reading.facts[step].asked]
    given = dict(root.asked)
    asked = given[""] if "" in given else question_in(given, searched)
    if asked is None and root.is_resumed:
        asked = next((text for step in reading.steps if (text := asked_in(step.messages)) is not None), None)
    return asked if asked is not None else next(iter(searched), None)


def _answer_among(reading: Reading) -> str | Stream | None:
    """Of a result with several parts, the last and longest one that a model said; else all of it.

    A run that returns nothing gave its answer as events: it is what its last model streamed.
    """
    root = reading.facts_of(reading.root)
    fields = root.fields if root.is_run else ()
    if root.is_run and not root.answer and not fields:
        spoken = [reading.text_of(step) for step in speakers_in(reading, reading.root) if reading.facts[step].streams]
        return next(filter(None, reversed(spoken)), reading.text_of(reading.root))
    for speaker in reversed(list(reading.walk(reading.root)) if fields else []):
        speaks = speaker is not reading.root and reading.facts[speaker].role in SPEAKING
        said = reading.text_of(speaker) if speaks else None
        parts = [text for text in fields if said and text.strip() and text.strip() in said]
        if parts:
            return max(parts, key=len)
    return root.answer


def _response(reading: Reading) -> str | None:
    answer = reading.text_of(reading.root)
    if reading.log.grouped:
        speakers = [step for step in reading.inside[reading.root] if reading.facts[step].role in SPEAKING]
        answers = map(reading.text_of, reversed(speakers))
        answer = next((answer for answer in answers if answer is not None), None)
    return without_thoughts(answer) or None if answer else answer
