"""What a request's prompts were filled with: the values of templates, and what steps and the caller handed on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from ragspan.matching import words_of
from ragspan.request.contents import Document, FilledPrompt, PayloadMessage, prompt_of
from ragspan.request.tree import ModelStep, RequestTree, SearchStep, Step, ToolStep
from ragspan.safe_copy import Opaque, Snapshot

FilledTexts: TypeAlias = Mapping[str, Sequence[str]]
"""By a text that a prompt template gave out, the texts that it was filled with."""

_FROM_CALLER = 8
"""Words of a field of the caller's that is data."""
_FROM_STEP = 3
_MAX_DEPTH = 5
_MAX_VALUES = 300
_MAX_LENGTH = 100_000
_MAX_RENDERED = 20_000
_INSTRUCTING = frozenset(
    {"system", "template", "instruction", "instructions", "persona", "format", "schema", "example", "examples", "tone"}
    | {"style", "prompt", "history", "messages", "question", "query", "role", "rules", "shots"}
)
"""Words in the names of fields that hold instructions, or what was said."""
_word = re.compile(r"[a-z]+")
_case = re.compile(r"(?<=[a-z])(?=[A-Z])")


def filled_texts(tree: RequestTree) -> FilledTexts:
    """What the prompt templates of a request, and of those that it continues, were filled with."""
    filled: dict[str, Sequence[str]] = {}
    steps = [step for each in tree.chain_of_requests for step in each.steps]
    for step in steps:
        if isinstance(step.output, FilledPrompt):
            given = step.inputs if step.late_inputs is None else step.late_inputs
            values = list(given.values()) if isinstance(given, dict) else given if _are_texts(given) else [given]
            prompt = prompt_of(step.output.messages, None)
            if not step.output.messages:  # the models inside the step around it were given it
                models = (one for one in steps if isinstance(one, ModelStep) and step.parent in set(one.around()))
                prompt = [part for one in models for part in one.messages]
            texts = [text for value in values for text in _texts_of(value) if text.strip()]
            others = [value for value in values if isinstance(value, (dict, list))]
            for part in prompt:
                if part.role != "ai":
                    own = [text for value in others for text in _rendered(value, part.text)]
                    known = filled.get(part.text)
                    filled[part.text] = [*(known or ()), *texts, *own] if known or own else texts
    return filled


def _are_texts(given: Snapshot) -> bool:
    return isinstance(given, list) and all(isinstance(each, str) for each in given)


def _texts_of(value: Snapshot) -> list[str]:
    """A value's text; of a document, which templates are filled with by the names of its fields, all of its texts."""
    if isinstance(value, Document):
        return [value.text, *(text for text in value.metadata.values() if isinstance(text, str))]
    return [value] if isinstance(value, str) else []


def _rendered(value: Snapshot, prompt: str) -> Iterator[str]:
    """What a prompt has of a list or dictionary: written by Python or as JSON, or else its texts."""
    if len(prompt) > _MAX_LENGTH:
        return
    if _is_plain(value):
        tuples = (
            [tuple(each) if isinstance(each, list) else each for each in value] if isinstance(value, list) else value
        )
        as_json = [json.dumps(value, ensure_ascii=False, indent=indent) for indent in (None, 2, 4)]
        for text in (str(value), str(tuples), json.dumps(value), *as_json):
            if len(text) <= _MAX_RENDERED and text in prompt:
                yield text
                return
    yield from (text for _, text in _leaves(value, "") if text in prompt)


def _is_plain(value: Snapshot, depth: int = 0) -> bool:
    if isinstance(value, (dict, list)):
        items = value.values() if isinstance(value, dict) else value
        return depth < _MAX_DEPTH and all(_is_plain(item, depth + 1) for item in items)
    return value is None or type(value) in {str, int, float, bool}


def data_in(tree: RequestTree, asked: Iterable[str]) -> list[str]:
    """The texts that are data wherever they stand: what steps gave out, and fields of the caller's; not what was said, nor instructions.

    Args:
        tree: the request.
        asked: the question, and what was searched with.
    """
    said = {text for each in tree.answering_models if (text := each.said.strip())}
    left_out = {*said, *(text.strip() for text in asked)}
    found: dict[str, None] = {}
    told: set[str] = set()
    for each in tree.chain_of_requests:
        for step in each.steps:
            if step.parent is None and isinstance(step.inputs, dict):
                given = step.inputs if step.late_inputs is None else step.late_inputs
                found |= dict.fromkeys(_values_in(given, _FROM_CALLER, told))
            if type(step) is Step and step.parent is not None and not isinstance(step.output, Opaque):
                if isinstance(step.output, str) and _is_prompt(step, tree):
                    continue
                found |= dict.fromkeys(_values_in(step.output, _FROM_STEP, told))
            if len(found) > _MAX_VALUES:
                break
    spoken = [text for text in said if " " in text]
    values = (text for text in list(found)[:_MAX_VALUES] if text not in told and text.strip() not in left_out)
    return [text for text in values if not any(one in text for one in spoken)]


def _is_prompt(step: Step, tree: RequestTree) -> bool:
    """Whether a text that a step gave out is all that a model was asked."""
    return any(part.text == step.output for model in tree.answering_models for part in model.prompt)


def _values_in(value: Snapshot, least: int, told: set[str]) -> Iterator[str]:
    """The texts of so many words in a value; those of fields that instruct or tell what was said go to `told`."""
    for name, text in _leaves(value, ""):
        if not _INSTRUCTING.isdisjoint(_word.findall(_case.sub("_", name).lower())):
            told.add(text)
        elif len(text) <= _MAX_LENGTH and len(text.split(None, least)) >= least:
            yield text


def _leaves(value: Snapshot, name: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """The texts in a value by the names of their fields; no messages, documents, and nothing that is not data."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, (dict, list)) and depth < _MAX_DEPTH:
        items = value.items() if isinstance(value, dict) else ((name, item) for item in value[:_MAX_VALUES])
        for key, item in items:
            if not isinstance(item, (Document, PayloadMessage, Opaque)):
                yield from _leaves(item, key, depth + 1)


def summaries_in(tree: RequestTree) -> Iterator[str]:
    """What fields and nodes give out that are called a summary."""
    for each in tree.chain_of_requests:
        for step in each.steps:
            if isinstance(step, (ToolStep, SearchStep, ModelStep)):
                continue
            for value in (step.inputs, step.output):
                for name, text in _leaves(value, step.name):
                    if "summar" in name.lower() and len(words_of(text[:500])) >= _FROM_CALLER:
                        yield text
