"""Names that a response shortens where the contexts write them out, or the other way round: "WHO", "World Health Organization"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ragspan.judges.overlap.sentences import Sentence, read_sentence

_SHORT = re.compile(r"\b[A-Z]{2,6}\b")
_SMALL = r"(?:(?:of|the|and|for|on) ){0,2}"
_LONG = re.compile(rf"\b[A-Z][a-z]{{1,30}}(?:[ -]{_SMALL}[A-Z][a-z]{{1,30}}){{1,5}}")
_ANY_CASE = 3
"""Letters from which on the long form may have small letters: "virtual private network"."""
_MOST = 8
"""Names that are looked up for one response."""


def as_in_contexts(claims: Sequence[Sentence], texts: Sequence[str]) -> tuple[Sentence, ...]:
    """English claims that are read with the contexts' form of each name of which they have only the other form."""
    forms = dict(_other_forms(" ".join(claim.text for claim in claims), texts))
    return tuple(_read_with(forms, claim) for claim in claims) if forms else tuple(claims)


def _read_with(forms: dict[str, str], claim: Sentence) -> Sentence:
    text = claim.text
    for form, other in forms.items():
        text = re.sub(rf"\b{re.escape(form)}\b", other, text)
    return claim if text == claim.text else replace(read_sentence(text), text=claim.text, read=text)


def _other_forms(response: str, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    for short in list(dict.fromkeys(_SHORT.findall(response)))[:_MOST]:
        if not _holding(short, texts) and (found := _written_out(short, texts)):
            yield short, found
    for long in list(dict.fromkeys(_LONG.findall(response)))[:_MOST]:
        if any(long in text for text in texts):
            continue
        for form in (long, long.partition(" ")[2]):  # the first word may be the article that begins a sentence
            short = "".join(re.findall("[A-Z]", form))
            if len(short) > 1 and _holding(short, texts):
                yield form, short
                break


def _holding(short: str, texts: Sequence[str]) -> bool:
    return any(short in text and re.search(rf"\b{short}\b", text) for text in texts)


def _written_out(short: str, texts: Sequence[str]) -> str:
    """The first words in a row with these initials."""
    words = rf"[ -]{_SMALL}".join(rf"{letter}[A-Za-z]{{1,30}}" for letter in short)
    pattern = re.compile(rf"\b{words}\b", re.IGNORECASE if len(short) >= _ANY_CASE else 0)
    return next((found[0] for found in map(pattern.search, texts) if found), "")
