"""One sentence taken apart: its clauses, what they deny, its numbers with their units, its names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import compress, pairwise

from ragspan.judges.overlap.contexts import ContextSentence
from ragspan.judges.overlap.contradictions.names import Name, read_names
from ragspan.judges.overlap.contradictions.quantities import WORDED, read_quantities
from ragspan.judges.overlap.contradictions.tables import Tables, english
from ragspan.judges.overlap.text import is_content, is_number, key, tokens

_MOST_CHARACTERS = 1200
"""Of a sentence; what lies beyond is not compared."""
_MOST_TOKENS = 120

_PAUSE = re.compile(r"([,;:](?=\s)|[()\[\]\"]|\s-{1,2}\s)")
_MARKS = frozenset(',;:()[]"-') | {"--"}
_ANSWERS = frozenset({"yes", "no"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Clause:
    """Words with one predicate."""

    start: int
    end: int
    own: frozenset[str]
    """Keys of its content words, numbers left out."""
    inherited: frozenset[str]
    """Those of the clauses before, which may hold its subject or its verb."""
    negations: tuple[int, ...]
    """Places of the words that deny."""
    optional: bool = False
    """It says that something need not be."""
    supposed: bool = False
    """It begins with "if" or the like, and states nothing."""


class SentenceFacts:
    """What the comparison asks of one sentence; what is asked of few sentences is found when it is first asked for."""

    __slots__ = ("_clauses", "_measured", "_names", "_parts", "content", "keys", "pauses", "quantities", "words")

    def __init__(self, text: str, key: Callable[[str], str] = key) -> None:
        self.words, self.pauses = _words(text[:_MOST_CHARACTERS])
        self.keys = _with_phrases(tuple(map(compared, map(key, self.words))))
        self.quantities = read_quantities(self.words, self.keys, self.pauses, english())
        self._measured = frozenset(
            place for one in self.quantities if one.kind not in WORDED for place in range(one.at, one.end)
        )
        told = map(self._tells, range(len(self.keys))) if self._measured else map(_tells_as_content, self.keys)
        self.content = frozenset(compress(self.keys, told))
        """Keys of its content words, numbers left out."""
        self._parts: tuple[int, ...] | None = None
        self._clauses: tuple[Clause, ...] | None = None
        self._names: tuple[Name, ...] | None = None

    def _tells(self, place: int) -> bool:
        return place not in self._measured and _tells_as_content(self.keys[place])

    @property
    def parts(self) -> tuple[int, ...]:
        """For each word the number of its part: parts end at commas, "and", "but"."""
        if self._parts is None:
            self._parts = _parts(self.keys, self.pauses, english())
        return self._parts

    @property
    def clauses(self) -> tuple[Clause, ...]:
        if self._clauses is None:
            content = list(map(self._tells, range(len(self.keys))))
            self._clauses = tuple(_clauses(self.words, self.keys, content, self.pauses, english()))
        return self._clauses

    @property
    def names(self) -> tuple[Name, ...]:
        if self._names is None:
            found = read_names(self.words, self.keys, self.pauses)
            self._names = tuple(one for one in found if self._measured.isdisjoint(range(one.start, one.end)))
        return self._names


def facts_of_sentence(sentence: ContextSentence) -> SentenceFacts:
    """The facts of a sentence of a context."""
    return SentenceFacts(sentence.text, sentence.language.key)


def _with_phrases(keys: tuple[str, ...]) -> tuple[str, ...]:
    """The keys, those of verbs that mean something else with the next word by what they mean: "turn off", "give up"."""
    phrases = english().phrases
    if "longer" in keys:
        keys = tuple(
            "still" if one == "longer" and before == "no" and after != "than" else one
            for before, one, after in zip(("", *keys), keys, (*keys[1:], ""), strict=False)
        )
    if phrases.keys().isdisjoint(pairwise(keys)):
        return keys
    return tuple(phrases.get(pair, pair[0]) for pair in pairwise((*keys, "")))


def _words(text: str) -> tuple[tuple[str, ...], dict[int, str]]:
    """The words, and by the place of the word that follows, the marks between them; an answering "No," is left out."""
    words: list[str] = []
    pauses: dict[int, str] = {}
    for piece in _PAUSE.split(text):
        if piece.strip() in _MARKS:
            pauses[len(words)] = piece.strip()
            continue
        words += tokens(piece)
        if len(words) == 1 and words[0].lower() in _ANSWERS:
            words.clear()
        if len(words) > _MOST_TOKENS:
            break
    return tuple(words[:_MOST_TOKENS]), pauses


def _parts(keys: Sequence[str], pauses: dict[int, str], language: Tables) -> tuple[int, ...]:
    breaks = language.turns | language.joins | language.exceptions
    number, parts = 0, []
    for at, word in enumerate(keys):
        ranges = 0 < at < len(keys) - 1 and is_number(keys[at - 1]) and is_number(keys[at + 1])  # "between 10 and 18"
        number += at in pauses or (word in breaks and not ranges)
        parts.append(number)
    return tuple(parts)


def _clauses(
    words: Sequence[str], keys: Sequence[str], content: Sequence[bool], pauses: dict[int, str], language: Tables
) -> list[Clause]:
    starts = [0, *(at for at in range(1, len(keys)) if _begins_clause(at, words, keys, pauses, language)), len(keys)]
    starts = sorted({*starts, *(at for start, end in pairwise(starts) if (at := _resumes(start, end, keys, language)))})
    clauses: list[Clause] = []
    inherited: frozenset[str] = frozenset()
    for start, end in pairwise(starts):
        own = frozenset(word for word, tells in zip(keys[start:end], content[start:end], strict=True) if tells)
        negations, optional = _denials(words, keys, start, end, language)
        clauses.append(
            Clause(
                start=start,
                end=end,
                own=own,
                inherited=inherited,
                negations=negations,
                optional=optional,
                supposed=bool(end > start and keys[start] in _SUPPOSING),
            )
        )
        inherited |= own
    return clauses


def _begins_clause(
    at: int, words: Sequence[str], keys: Sequence[str], pauses: dict[int, str], language: Tables
) -> bool:
    mark, word = pauses.get(at), keys[at]
    if mark in {";", ":"} or word in language.turns or word in language.exceptions:
        return True
    if word == "that" and at + 1 < len(keys) and keys[at + 1] in language.auxiliaries:
        return True
    if mark == "," or word in language.joins:
        following = keys[at + 1 : at + _NEAR]
        for place, after in enumerate(following):
            if after in language.joins or at + 1 + place in pauses:
                return False
            if after in language.auxiliaries:
                return True
            if 0 < place < _SOON and word in language.joins and is_past(words[at + 1 + place]):
                return is_content(following[place - 1])
    return False


def is_past(word: str) -> bool:
    """True for what is written as the past of a verb."""
    return word.endswith("ed") or word.lower() in english().past


def _resumes(start: int, end: int, keys: Sequence[str], language: Tables) -> int:
    """Where the main clause goes on after a relative one: "a worker that does not answer | is removed"."""
    if keys[start] not in {"that", "who", "which"}:
        return 0
    verb = next((at for at in range(start + 1, end) if keys[at] in language.auxiliaries), end)
    told = next((at for at in range(verb + 1, end) if is_content(keys[at])), end)
    return next((at for at in range(told + 1, end) if keys[at] in language.auxiliaries and keys[at] != "not"), 0)


_NEAR, _SOON = 7, 4
"""A comma or "and" begins a clause where a verb follows within so many words."""


def _denials(
    words: Sequence[str], keys: Sequence[str], start: int, end: int, language: Tables
) -> tuple[tuple[int, ...], bool]:
    """The places of the words that deny, and whether they only say that something need not be."""
    found: list[int] = []
    optional = False
    for at in range(start, end):
        word, after = keys[at], keys[at + 1] if at + 1 < len(keys) else ""
        if word in language.exceptions or (
            word in language.negations and (word, after) not in language.harmless and not is_number(after)
        ):
            before = keys[at - 1] if at else ""
            if _leaves_free(before, keys[at + 1 : min(end, at + 4)], language.needed):
                optional = True
            else:
                found.append(at)
        elif (words[at].lower() in _REFUSING and after == "to" and not is_number((*keys, "", "")[at + 2])) or (
            word == "free" and at and is_content(keys[at - 1]) and after in {"", "of"}
        ):
            found.append(at)
    return tuple(found), optional


def _leaves_free(before: str, after: Sequence[str], needed: frozenset[str]) -> bool:
    """True for "need not", "do not have to", "is not required"."""
    return before in needed or list(after[:2]) == ["have", "to"] or not needed.isdisjoint(after)


_SUPPOSING = frozenset({"if", "unless", "whether", "when"})
_REFUSING = frozenset({"failed", "fails", "fail", "refused", "refuses", "refuse", "declined", "ceased"})
_INCLUDING = frozenset({"include", "includes", "included", "including"})
_LITTLE = frozenset({"against", "still", "also", "as", "well", "now", "current"})


def compared(word: str) -> str:
    """The key as it is compared here: "include" tells something, however it is inflected, and "goes" is "go"."""
    return "include" if word in _INCLUDING else english().light.get(word, word)


def tells(word: str) -> bool:
    """True for the keys of words that are compared."""
    return (is_content(word) and not is_number(word) and word not in _LITTLE) or word == "include"


@lru_cache(maxsize=1 << 15)
def _tells_as_content(word: str) -> bool:
    return tells(word) and word not in english().denying


@cache
def may_be_elsewhere() -> frozenset[str]:
    """Words that are looked for otherwise than by themselves: as a part of a quantity, by an opposite, by what they deny."""
    tables = english()
    phrases = {first for first, _ in tables.phrases} | {"degre", "usa", "u"}
    return tables.denying | tables.opposites.keys() | tables.units.keys() | tables.scales.keys() | phrases


def may_turn(keys: Iterable[str]) -> bool:
    """False for a sentence with these keys that neither denies nor ends anything."""
    return not _turning_keys().isdisjoint(keys)


@cache
def _turning_keys() -> frozenset[str]:
    tables = english()
    return tables.negations | tables.exceptions | tables.ending | {"free", "unless", *map(key, _REFUSING)}
