"""Which sentences of a response claim something."""

from __future__ import annotations

import re

from ragspan.judges.overlap.sentences import split_sentences
from ragspan.judges.overlap.text import is_content, keys, readable

MAX_CHARACTERS = 50_000
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


def read_claims(response: str) -> tuple[str, ...]:
    """The sentences with content, list markers left out; greetings, courtesies and "Here is ...:" are none."""
    sentences = split_sentences(readable(response[:MAX_CHARACTERS]))
    claims = []
    for sentence in sentences:
        if any(map(is_content, keys(sentence))) and not is_courtesy(sentence):
            claims.append(sentence)
            if len(claims) == MAX_CLAIMS:
                break
    return tuple(claims)


def is_courtesy(sentence: str) -> bool:
    """True for what is said to be polite, or only to announce the answer."""
    return _COURTESY.match(sentence) is not None
