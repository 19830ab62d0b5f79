"""Which sentences of a response claim something."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from ragspan.judges.overlap.languages import ENGLISH, Language, characters_read
from ragspan.judges.overlap.sentences import split_sentences
from ragspan.judges.overlap.text import is_content, readable

MAX_CHARACTERS = 30_000
"""Characters of a response that are read."""
MAX_CLAIMS = 400
"""Sentences of a response that are scored, the first ones."""

_INTERJECTION = (
    r"(?:sure|certainly|of\ course|absolutely|hello|hi|hey|thanks|thank\ you|(?:great|good)\ question|"
    r"you(?:'|\ a)re\ welcome|no\ problem)(?:\ (?:there|thing|for\ asking))?"
)
_COURTESY = re.compile(
    rf"""
    \W{{0,9}}(?:{_INTERJECTION}\b[\s,.!:-]{{0,5}}){{0,3}}
    (?: $
      | (?:i(?:\ would|'d)\ be|i(?:\ a|')m)?\s?(?:happy|glad|here)\ to\ (?:help|assist)\b
      | (?:i\ )?hope\ (?:this|that|it)\ (?:help|answer|clarif)
      | (?:please\ )?(?:let\ me\ know|feel\ free|do\ not\ hesitate|don't\ hesitate)\b
      | (?:is\ there\ anything\ else|how\ (?:can|may)\ i\ (?:help|assist))\b
      | here(?:'s|\ is|\ are)\b[^\n]*:\W{{0,9}}$
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)


_OPENING = re.compile(r"\W{0,9}(\w{1,12})")
_OPENINGS = frozenset(
    """
    sure certainly of absolutely hello hi hey thanks thank great good you no i happy glad here hope please let feel do don is
    how
    """.split()  # noqa: SIM905 - a table of words
)
"""The words that a courtesy may begin with; to look at them first spares most sentences the long expression."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A sentence with its words and what they are compared by."""

    text: str
    words: tuple[str, ...]
    keys: tuple[str, ...]


def as_claim(text: str, language: Language = ENGLISH) -> Claim:
    words = tuple(language.tokens(text))
    return Claim(text=text, words=words, keys=tuple(map(language.key, words)))


def read_claims(response: str, language: Language = ENGLISH) -> tuple[Claim, ...]:
    """The sentences with content, list markers left out; greetings, courtesies and "Here is ...:" are none."""
    lines = split_sentences(readable(response[: characters_read([response], MAX_CHARACTERS)[0]]), language=language)
    sentences = (as_claim(line, language) for line in lines)
    return tuple(islice(filter(_claims_something, sentences), MAX_CLAIMS))


def _claims_something(sentence: Claim) -> bool:
    return any(map(is_content, sentence.keys)) and not is_courtesy(sentence.text)


def is_courtesy(sentence: str) -> bool:
    """True for what is said to be polite, or only to announce the answer."""
    opening = _OPENING.match(sentence)
    if opening is not None and opening[1].isascii() and opening[1].lower() not in _OPENINGS:
        return False
    return _COURTESY.match(sentence) is not None
