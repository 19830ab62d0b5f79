"""Where short texts stand by themselves in a prompt: one word, or a few, may stand anywhere in instructions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from ragspan.matching import Match, Span, words_of
from ragspan.request.templates import FilledTexts

SHORT = 24
"""Characters: a longer text is looked for wherever it may be."""
_MAX_LOOKED_AT = 200_000
_MAX_OCCURRENCES = 100


def is_a_document(text: str, part: str, match: Match, filled: FilledTexts, others: Collection[str]) -> bool:
    """Whether a short document stands in a part of a prompt as one, and not as words of the instructions.

    Args:
        text: the document's.
        part: the part, which has its words.
        match: where they were found.
        filled: what templates were filled with.
        others: the words of all short documents, which may be written in a row.
    """
    if any(next(_occurrences(text, value), None) for value in filled.get(part, ())):
        return True
    return any(_stands_apart(part, *span, others) for span in (match.span, *_occurrences(text, part)))


def is_a_draft(word: str, part: str, filled: FilledTexts) -> bool:
    """Whether a part of a prompt hands on a single word as what a model said: after a colon, in quotes, or as a template's value."""
    if any(words_of(value[: len(word) + SHORT]) == words_of(word) for value in filled.get(part, ())):
        return True
    own = re.escape(word.strip(" \t\n.!"))
    handed_on = rf"(?:[:=][ \t]*[\"'“«*_`]{{0,3}}{own}\W{{0,3}}(?:[.;]\s|\n|$)|[\"“«`]{own}[.!]?[\"”»`])"
    return bool(own) and re.search(handed_on, part[:_MAX_LOOKED_AT], re.IGNORECASE) is not None


def places_in_lines(text: str, part: str) -> Span | None:
    """Where the words of a short text stand in one line in order, with only marks between: '(Ada)-[:knows]->(Bo)'."""
    between = r"[^\w\n]{0,8}_?[^\w\n]{0,8}"
    wanted = between.join(map(re.escape, words_of(text)))
    found = re.search(rf"(?<!\w){wanted}(?!\w)", part, re.IGNORECASE)
    return None if found is None else found.span()


def _occurrences(text: str, part: str) -> Iterator[Span]:
    words = words_of(text)
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
    if not (before.rstrip(" ")[-1:].isalnum() or after.lstrip(" ")[:1].isalnum()):
        return True
    return all(word in others for word in words_of(f"{before[-SHORT * 8 :]} {after[: SHORT * 8]}"))
