"""What stands in the prompts behind an answer: nodes that were found before, and the words of earlier steps.

Runs in the worker. Nodes are looked for in what a model was given; its own earlier words hold no contexts, but they may
be a draft that rests on some.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from ragspan.matching import PromptText, words_of
from ragspan_llama_index.roles import CALL, MODEL, POSTPROCESSING, SEARCH, SPEAKING, SYNTHESIS, TOOL
from ragspan_llama_index.steps import SeenNode, Step
from ragspan_llama_index.texts import Prompt

_ASSISTANT = "assistant"
_LOOKED_AT = 500  # characters that tell whether there is a second word
_SPEAKING = frozenset({CALL, SYNTHESIS, MODEL, TOOL})
_CLOSED = frozenset({SEARCH, POSTPROCESSING, SYNTHESIS})
"""What is said inside of these serves them alone."""


class Passage:
    """A node that may stand in a prompt: as the framework writes it, with metadata, or its own text alone."""

    def __init__(self, node: SeenNode, text: str) -> None:
        self.node = node
        self.text = text
        self.own = node.text if node.text.strip() and node.text in text else text

    def as_in(self, prompt: str, place: int) -> str:
        """Its text as it stands in a prompt that holds its own text, probably at this place."""
        near = slice(max(0, place - len(self.text)), place + len(self.text))
        return self.text if self.text in prompt[near] or self.text in prompt else self.own


def is_composite(model: Step) -> bool:
    """Whether a model's method used tools or engines of the program for its answer."""
    return any(inner.role is not MODEL for inner in model.walk())


def prompts_of(model: Step) -> list[Step]:
    """The calls behind a model's method that show what the model was given."""
    return [inner for inner in model.walk() if inner.prompt]


def behind(model: Step, root: Step) -> tuple[list[Step], list[Step]]:
    """All models that stand behind this one, in order of time, and the other steps whose words stand in their prompts.

    An earlier model stands behind a later one that was given its words: a partial answer, notes, a draft. What it wrote
    only to search with, and a single word, such as a grade, do not count.
    """
    queries = {text for step in root.walk() if step.role is SEARCH for _, text in step.asked}
    waiting = [model]
    known = {id(model)}
    read: set[str] = set()
    found: list[Step] = []
    told: list[Step] = []
    while waiting:
        model = waiting.pop()
        found.append(model)
        for call in prompts_of(model):
            parts = [text for _, text in call.prompt if text not in read]
            read.update(parts)
            said = [step for step in _said_before(root, call.started_ns) if _tells(step, parts, queries)]
            if not parts or not said:
                continue
            places = PromptText("\n".join(parts)).find(
                [step.answer_text() or "" for step in said], excerpts=len(found) == 1
            )
            quoted = [step for step, place in zip(said, places, strict=True) if place is not None]
            inner = {id(below) for step in quoted for below in step.walk() if below is not step}
            for step in quoted:
                if id(step) not in known and id(step) not in inner:
                    known.add(id(step))
                    (waiting if step.role is MODEL and not is_composite(step) else told).append(step)
    return sorted(found, key=lambda step: step.started_ns), told


def given_to(models: Iterable[Step]) -> str:
    """What these models were given, each text once."""
    parts = {text: None for model in models for call in prompts_of(model) for text in _given(call.prompt)}
    return "\n".join(parts)


def _given(prompt: Prompt) -> Iterator[str]:
    return (text for role, text in prompt if role != _ASSISTANT)


def _said_before(root: Step, moment_ns: int) -> Iterator[Step]:
    for child in root.children:
        if child.role in _SPEAKING and 0 < child.ended_ns <= moment_ns:
            yield child
        if child.role not in _CLOSED:
            yield from _said_before(child, moment_ns)


def _tells(step: Step, parts: Iterable[str], queries: Collection[str]) -> bool:
    """Whether words in a prompt may be known for those of a step."""
    said = (step.answer_text() or "").strip()
    if not said or (step.role is TOOL and not any(speakers_in(step))):
        return False
    if step.role is not MODEL:
        return True
    return said not in queries and (
        len(words_of(said[:_LOOKED_AT])[0]) > 1 or any(said in part.splitlines() for part in parts)
    )


def shown_beginnings(texts: Sequence[str], prompt: str) -> Iterator[tuple[str, bool]]:
    """What a prompt shows of texts that were joined and cut off at the end: each text, and whether it was cut."""
    spelled = [words_of(text)[0] for text in texts]
    left = _shown([word for words in spelled for word in words], words_of(prompt)[0])
    for text, words in zip(texts, spelled, strict=True):
        if left <= 0:
            return
        yield (text, False) if len(words) <= left else (_beginning(text, left), True)
        left -= len(words)


def _shown(words: Sequence[str], prompt: Sequence[str]) -> int:
    """How many words of a text's beginning stand in a prompt."""
    held = f" {' '.join(prompt)} "
    return _most(len(words), lambda count: f" {' '.join(words[:count])} " in held)


def _beginning(text: str, words: int) -> str:
    """The beginning of a text that has so many words."""
    return text[: _most(len(text), lambda length: len(words_of(text[:length])[0]) <= words)].rstrip()


def _most(most: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `most` that fits, where all smaller ones do."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


# Which inner steps wrote an answer

_word = re.compile(r"\w+")


def writers_of(step: Step) -> list[Step]:
    """The inner step whose result a call handed on, or whose words it gave, or the several that its words consist of.

    Some models do not tell the words that they stream: they wrote what nobody else said.
    """
    if step.origin is not None:
        return [step.origin]
    speakers = list(speakers_in(step))
    answer = bare(step.answer_text())
    if not speakers or not answer:
        return speakers[-1:]
    same = [speaker for speaker in speakers if _said(speaker, answer)]
    if same:
        return same[-1:]
    parts = [speaker for speaker in speakers if _is_part(speaker, answer)]
    unheard = [speaker for speaker in speakers if speaker.streams and not speaker.answer_text()]
    if unheard and 2 * sum(len(bare(part.answer_text())) for part in parts) < len(answer):
        return unheard[-1:]
    return parts or speakers[-1:]


def bare(text: str | None) -> str:
    """The words of a text, without case and punctuation."""
    return " ".join(_word.findall((text or "").casefold()))


def speakers_in(step: Step) -> Iterator[Step]:
    """The inner steps that may have written the answer, in the order in which they began."""
    for child in step.children:
        if child.role in SPEAKING:
            yield child
        elif child.role is TOOL:
            yield from speakers_in(child)


def _said(speaker: Step, answer: str) -> bool:
    said = bare(speaker.answer_text())
    return answer in said if speaker.role is MODEL else answer == said


def _is_part(speaker: Step, answer: str) -> bool:
    """Whether its words stand in the answer. A single word of a model, a grade or a choice, stands anywhere."""
    said = bare(speaker.answer_text())
    return said in answer and (" " in said or (bool(said) and speaker.role is not MODEL))
