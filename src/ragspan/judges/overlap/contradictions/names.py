"""Names: words that are written with a capital where others are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragspan.judges.overlap.text import is_content, is_number
from ragspan.judges.overlap.vocabulary import FUNCTION_WORDS


@dataclass(frozen=True, kw_only=True, slots=True)
class Name:
    """Capitalised words in a row."""

    start: int
    end: int
    text: str
    keys: frozenset[str]
    before: str
    """The key of the preposition before it, empty where none is."""


_PREPOSITIONS = frozenset(
    [
        "by",
        "in",
        "at",
        "on",
        "from",
        "to",
        "of",
        "for",
        "with",
        "into",
        "against",
        "as",
        "than",
        "over",
        "under",
        "between",
    ]
)
_SKIPPED = frozenset({"the", "a", "an", "its", "his", "her", "their"})


def read_names(words: Sequence[str], keys: Sequence[str], pauses: Mapping[int, str]) -> tuple[Name, ...]:
    """The names of a sentence. Its first word may be one; who asks knows better."""
    found: list[Name] = []
    at = 0
    while at < len(words):
        end = at
        while end < len(words) and _is_capitalised(words[end], keys[end]) and (end == at or end not in pauses):
            end += 1
        if end > at:
            found.append(
                Name(
                    start=at,
                    end=end,
                    text=" ".join(words[at:end]),
                    keys=frozenset(keys[at:end]),
                    before=_preposition(keys, at),
                )
            )
        at = max(end, at + 1)
    return tuple(found)


def _is_capitalised(word: str, word_key: str) -> bool:
    return word[0].isupper() and is_content(word_key) and not is_number(word_key) and word.lower() not in FUNCTION_WORDS


def _preposition(keys: Sequence[str], at: int) -> str:
    while at and keys[at - 1] in _SKIPPED:
        at -= 1
    return keys[at - 1] if at and keys[at - 1] in _PREPOSITIONS else ""
