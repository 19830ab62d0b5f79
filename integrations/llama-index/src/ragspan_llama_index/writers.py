"""Which inner steps wrote an answer.

Runs in the worker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragspan_llama_index.roles import MODEL, SPEAKING, TOOL
from ragspan_llama_index.steps import Step

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
