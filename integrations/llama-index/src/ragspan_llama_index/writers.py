"""Which inner steps wrote an answer.

Runs in the worker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragspan_llama_index.roles import Role
from ragspan_llama_index.steps import Step

_word = re.compile(r"\w+")


def writers_of(step: Step) -> list[Step]:
    """The inner step whose result a call handed on, or whose words it gave, or the several that its words consist of.

    The words of a model's stream cannot be seen: it wrote what nobody else said. Its prompt tells when it cannot have
    written the answer, since it holds it.
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
    streams = [speaker for speaker in speakers if speaker.streams]
    if streams and 2 * sum(len(bare(part.answer_text())) for part in parts) < len(answer):
        text = (step.answer_text() or "").strip()
        return [next((stream for stream in reversed(streams) if not _was_told(stream, text, step)), streams[-1])]
    return parts or speakers[-1:]


def bare(text: str | None) -> str:
    """The words of a text, without case and punctuation."""
    return " ".join(_word.findall((text or "").casefold()))


def speakers_in(step: Step) -> Iterator[Step]:
    """The inner steps that may have written the answer, in the order in which they began."""
    for child in step.children:
        if child.role in {Role.CALL, Role.SYNTHESIS, Role.MODEL}:
            yield child
        elif child.role is Role.TOOL:
            yield from speakers_in(child)


def _said(speaker: Step, answer: str) -> bool:
    said = bare(speaker.answer_text())
    return answer in said if speaker.role is Role.MODEL else answer == said


def _is_part(speaker: Step, answer: str) -> bool:
    """Whether its words stand in the answer. A single word of a model, a grade or a choice, stands anywhere."""
    said = bare(speaker.answer_text())
    return said in answer and (" " in said or (bool(said) and speaker.role is not Role.MODEL))


def _was_told(model: Step, answer: str, step: Step) -> bool:
    """Whether a model was given the answer: it came later. What was found for it, it may have repeated."""
    if not any(answer in text for inner in model.walk() for _, text in inner.prompt):
        return False
    found = [node.text for inner in step.walk() for node in inner.found or ()]
    found += [inner.answer_text() or "" for inner in step.walk() if inner.role is Role.TOOL]
    return not any(answer in text for text in found)
