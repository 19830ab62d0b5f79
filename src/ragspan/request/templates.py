"""What a request's prompts were filled with: the values of templates, and what steps and the caller handed on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from ragspan.matching import words_of
from ragspan.request.contents import Document, FilledPrompt, PayloadMessage, prompt_of
from ragspan.request.tree import RequestTree, Step
from ragspan.safe_copy import Opaque, Snapshot

FilledTexts: TypeAlias = Mapping[str, Sequence[str]]
"""By a text that a prompt template gave out, the texts that it was filled with."""

_FROM_CALLER = 8  # words of a field of the caller's that is data
_FROM_STEP = 3
_MAX_VALUES = 300
_MAX_LENGTH = 100_000
_INSTRUCTING = frozenset(
    {"system", "template", "instruction", "instructions", "persona", "format", "schema", "example", "examples", "tone"}
    | {"style", "prompt", "history", "messages", "question", "query", "role", "rules", "shots"}
)
"""Words in the names of fields that hold instructions, or what was said."""
_word = re.compile(r"[a-z]+")
_case = re.compile(r"(?<=[a-z])(?=[A-Z])")


def filled_texts(tree: RequestTree) -> FilledTexts:
    """What the prompt templates of a request, and of those that it continues, were filled with, as far as it stands there."""
    given: dict[int, tuple[Sequence[Snapshot], list[Snapshot]]] = {}  # several templates may have made the same prompts
    for step in (step for each in tree.chain_of_requests for step in each.steps):
        if isinstance(step.output, FilledPrompt):
            own = step.inputs if step.late_inputs is None else step.late_inputs
            is_texts = isinstance(own, list) and all(isinstance(each, str) for each in own)
            values = own.values() if isinstance(own, dict) else own if is_texts else [own]
            given.setdefault(id(step.output.messages), (step.output.messages, []))[1].extend(values)
    filled: dict[str, list[str]] = {}
    for messages, values in given.values():
        texts = {text: text.strip() for value in values for text in _texts_of(value) if text.strip()}
        others = [value for value in values if isinstance(value, (dict, list))]
        for prompt in dict.fromkeys(part.text for part in prompt_of(messages, None) if part.role != "ai"):
            written = [text for text, bare in texts.items() if bare in prompt]
            written += [text for value in others for text in _written_of(value, prompt)]
            filled.setdefault(prompt, []).extend(written)
    return filled


def _texts_of(value: Snapshot) -> list[str]:
    """A text, or those of a document: a template is filled with it by the names of its fields."""
    own = [value.text, *value.metadata.values()] if isinstance(value, Document) else [value]
    return [text for text in own if isinstance(text, str)]


def _written_of(value: Snapshot, prompt: str) -> list[str]:
    """What a prompt has of a list or dictionary: as Python or JSON writes it, or else its texts."""
    if len(prompt) > _MAX_LENGTH:
        return []
    try:
        written = [json.dumps(value, ensure_ascii=False, indent=indent) for indent in (None, 2)]
        whole = next((text for text in [*written, str(value)] if text in prompt), None)
    except TypeError:  # it holds messages, say
        whole = None
    return [text for _, text in _leaves(value, "") if text in prompt] if whole is None else [whole]


def data_in(tree: RequestTree, asked: Iterable[str]) -> list[str]:
    """The texts that are data wherever they stand: what steps gave out, and fields of the caller's; not what was said, nor instructions.

    Args:
        tree: the request.
        asked: the question, and what was searched with.
    """
    said = {text for each in tree.answering_models if (text := each.said.strip())}
    left_out = {*said, *(text.strip() for text in asked)}
    asked_models = {part.text for model in tree.answering_models for part in model.prompt}
    found: dict[str, None] = {}
    told: set[str] = set()
    for step in (step for each in tree.chain_of_requests for step in each.steps):
        value: Snapshot = None
        if step.parent is None:
            given = step.inputs if step.late_inputs is None else step.late_inputs
            value = given if isinstance(step.inputs, dict) else None
        elif type(step) is Step and not isinstance(step.output, Opaque):
            is_prompt = isinstance(step.output, str) and step.output in asked_models  # all that a model was asked
            value = None if is_prompt else step.output
        least = _FROM_CALLER if step.parent is None else _FROM_STEP
        for name, text in _leaves(value, "") if len(found) <= _MAX_VALUES else ():
            if not _INSTRUCTING.isdisjoint(_word.findall(_case.sub("_", name).lower())):
                told.add(text)
            elif len(text) <= _MAX_LENGTH and len(text.split(None, least)) >= least:
                found[text] = None
    spoken = [text for text in said if " " in text]
    values = (text for text in islice(found, _MAX_VALUES) if text not in told and text.strip() not in left_out)
    return [text for text in values if not any(one in text for one in spoken)]


def _leaves(value: Snapshot, name: str) -> Iterator[tuple[str, str]]:
    """The texts in a value by the names of their fields; no messages, documents, and nothing that is not data."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else ((name, item) for item in value[:_MAX_VALUES])
        for key, item in items:
            if not isinstance(item, (Document, PayloadMessage, Opaque)):
                yield from _leaves(item, key)


def summaries_in(tree: RequestTree) -> Iterator[str]:
    """What fields and nodes give out that are called a summary."""
    for step in (step for each in tree.chain_of_requests for step in each.steps if type(step) is Step):
        for value in (step.inputs, step.output):
            for name, text in _leaves(value, step.name):
                if "summar" in name.lower() and len(words_of(text[:500])) >= _FROM_CALLER:
                    yield text
