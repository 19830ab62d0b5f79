"""Names that a response shortens where the contexts write them out, or the other way round: "WHO", "World Health Organization"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ragspan.text.sentences import Sentence, read_sentence
from ragspan.text.vocabulary import FUNCTION_WORDS

_SHORT = re.compile(r"\b[A-Z]{2,6}\b")
_LONG = re.compile(r"\b[A-Z][a-z]{1,30}(?:[ -](?:(?:of|the|and|for|on) ){0,2}[A-Z][a-z]{1,30}){1,5}")
_WORD = re.compile("[A-Za-z]+")
_SMALL = frozenset({"of", "the", "and", "for", "on"})
"""Words that give an abbreviation no letter."""
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
    shorts = [one for one in list(dict.fromkeys(_SHORT.findall(response)))[:_MOST] if not _holding(one, texts)]
    initials = [_initials(text) for text in texts] if shorts else []
    for short in shorts:
        written_out = (_written_out(short, text, *initial) for text, initial in zip(texts, initials, strict=True))
        if found := next(filter(None, written_out), None):
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


def _written_out(short: str, text: str, letters: str, places: Sequence[tuple[int, int]]) -> str | None:
    """The first words in a row with these initials: names, or from `_ANY_CASE` letters on any words of content."""
    at = letters.find(short)
    if at < 0 and len(short) >= _ANY_CASE:
        at = letters.lower().find(short.lower())
    return text[places[at][0] : places[at + len(short) - 1][1]] if at >= 0 else None


def _initials(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The first letters of its words, and where the words are. A space is between words that make no name together."""
    letters, places, end = [], [], 0
    for found in _WORD.finditer(text):
        between, end = text[end : found.start()], found.end()
        if between != "-" and not between.isspace():
            letters.append(" ")
            places.append(found.span())
        if found[0] not in _SMALL:
            letters.append(" " if found[0].lower() in FUNCTION_WORDS else found[0][0])
            places.append(found.span())
    return "".join(letters), places
