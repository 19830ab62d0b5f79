"""Where short texts stand by themselves in a prompt: one word, or a few, may stand anywhere in instructions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from ragspan.matching import words_of
from ragspan.request.contents import Document, FilledPrompt, prompt_of
from ragspan.request.tree import RequestTree
from ragspan.safe_copy import Snapshot

Filled = Mapping[str, Sequence[str]]
"""By a text that a prompt template gave out, the texts that it was filled with."""

SHORT = 24
"""Characters: a longer text is looked for wherever it may be."""
_MIN_VALUE = 4
_MAX_LOOKED_AT = 200_000
_MAX_OCCURRENCES = 100


def texts_filled_in(tree: RequestTree) -> Filled:
    """What the prompt templates of a request, and of those that it continues, were filled with."""
    filled: dict[str, Sequence[str]] = {}
    for step in (step for each in tree.chain_of_requests for step in each.steps):
        if isinstance(step.output, FilledPrompt):
            given = step.inputs if step.late_inputs is None else step.late_inputs
            values = list(given.values()) if isinstance(given, dict) else [given]
            texts = [text for value in values for text in _texts_of(value) if text.strip()]
            filled |= {part.text: texts for part in prompt_of(step.output.messages, None) if part.role != "ai"}
    return filled


def _texts_of(value: Snapshot) -> list[str]:
    """A value's text; of a document, which templates are filled with by the names of its fields, all of its texts."""
    if isinstance(value, Document):
        return [value.text, *(text for text in value.metadata.values() if isinstance(text, str))]
    return [value] if isinstance(value, str) else []


def long_enough(texts: Sequence[str]) -> list[str]:
    """The texts that are long enough to be looked for."""
    return [text for text in texts if len(text.strip()) >= _MIN_VALUE]


def is_a_document(text: str, part: str, filled: Filled, others: Collection[str]) -> bool:
    """Whether a short document stands in a part of a prompt as one, and not as words of the instructions.

    Args:
        text: the document's.
        part: the part, which has its words.
        filled: what templates were filled with.
        others: the words of all short documents, which may be written in a row.
    """
    if any(next(_occurrences(text, value), None) for value in filled.get(part, ())):
        return True
    return any(_stands_apart(part, *span, others) for span in _occurrences(text, part))


def is_a_draft(word: str, part: str, filled: Filled) -> bool:
    """Whether a part of a prompt hands on a single word as what a model said: after a colon, in quotes, or as a template's value."""
    if any(words_of(value[: len(word) + SHORT])[0] == words_of(word)[0] for value in filled.get(part, ())):
        return True
    own = re.escape(word.strip(" \t\n.!"))
    handed_on = rf"(?:[:=][ \t]*[\"'“«*_`]{{0,3}}{own}\W{{0,3}}(?:[.;]\s|\n|$)|[\"“«`]{own}[.!]?[\"”»`])"
    return bool(own) and re.search(handed_on, part[:_MAX_LOOKED_AT], re.IGNORECASE) is not None


def _occurrences(text: str, part: str) -> Iterator[tuple[int, int]]:
    words = words_of(text)[0]
    wanted = r"\W+".join(map(re.escape, text.split())) if len(text.split()) == len(words) else re.escape(text.strip())
    for count, match in enumerate(re.finditer(rf"(?<!\w){wanted}(?!\w)", part[:_MAX_LOOKED_AT], re.IGNORECASE)):
        if count >= _MAX_OCCURRENCES:
            return
        yield match.span()


def _stands_apart(part: str, start: int, end: int, others: Collection[str]) -> bool:
    """Whether no word of a sentence goes before or after it, and it is not a heading."""
    before, after = part[part.rfind("\n", 0, start) + 1 : start], part[end:].partition("\n")[0]
    if after.lstrip(" *_\"'”").startswith(":"):
        return False
    if not (_is_word(before.rstrip(" ")[-1:]) or _is_word(after.lstrip(" ")[:1])):
        return True
    return all(word in others for word in words_of(f"{before[-SHORT * 8 :]} {after[: SHORT * 8]}")[0])


def _is_word(character: str) -> bool:
    return character.isalnum()
