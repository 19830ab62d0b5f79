"""One sentence taken apart: its clauses, what they deny, its numbers with their units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate, compress, pairwise

from ragspan.judges.screen.english import english
from ragspan.judges.screen.quantities import WORDED, read_quantities
from ragspan.text.keys import is_content, is_number, key, tokens
from ragspan.text.languages import ENGLISH, Language
from ragspan.text.lazy import Lazy
from ragspan.text.vocabulary import word_set

_MOST_CHARACTERS = 1200
"""Characters of a sentence that are compared."""
_MOST_TOKENS = 120
_NEAR, _SOON = 7, 4
"""A comma begins a clause if a verb follows within `_NEAR` words; "and" also if a past form follows within `_SOON`."""

_PAUSE = re.compile(r"([,;:](?=\s)|[()\[\]\"]|\s-{1,2}\s)")
_REPLY = re.compile(r"^(?:yes|no)[.!]\s+(?=[A-Z])", re.IGNORECASE)
_MARKS = frozenset(',;:()[]"-') | {"--"}
_ANSWERS = frozenset({"yes", "no"})
_SUPPOSING = frozenset({"if", "unless", "whether", "when", "whenever"})
_REFUSING = frozenset({"failed", "fails", "fail", "refused", "refuses", "refuse", "declined", "ceased"})
_COMPARING = word_set("more less fewer longer shorter later earlier older younger higher lower")
_INCLUDING = frozenset({"include", "includes", "included", "including"})
_LITTLE = frozenset({"against", "still", "also", "as", "well", "now", "current"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Clause:
    """Words with one predicate."""

    start: int
    end: int
    own: frozenset[str]
    """Keys of its content words, without numbers."""
    light: frozenset[str]
    """Its verbs that are too common to be content."""
    inherited: frozenset[str]
    """Those of the clauses before, which may hold its subject or its verb."""
    negations: tuple[int, ...]
    """Places of the words that deny."""
    supposed: bool
    """It begins with "if" or the like, and states nothing."""


class SentenceFacts:
    """What the comparison needs of one sentence. What few sentences need is found when it is first asked for."""

    def __init__(self, text: str, language: Language = ENGLISH) -> None:
        self.words, self.pauses = _words(text[:_MOST_CHARACTERS])
        self.keys = _with_phrases(tuple(map(compared, map(language.key, self.words))))
        self.quantities = read_quantities(self.words, self.keys, self.pauses)
        self._measured = frozenset(
            place for one in self.quantities if one.kind not in WORDED for place in range(one.at, one.end)
        )
        tells = map(self._tells, range(len(self.keys))) if self._measured else map(_tells_as_content, self.keys)
        self.content = frozenset(compress(self.keys, tells))
        """Keys of its content words, without numbers."""

    @Lazy
    def parts(self) -> tuple[int, ...]:
        """For each word the number of its part: parts end at commas, "and", "but"."""
        ends = (
            at in self.pauses or (word in english().breaks and not self._joins_numbers(at))
            for at, word in enumerate(self.keys)
        )
        return tuple(accumulate(ends))

    @Lazy
    def clauses(self) -> tuple[Clause, ...]:
        """At least one, unless the sentence is empty."""
        return tuple(self._read_clauses())

    def clause_at(self, place: int) -> Clause:
        """The clause with the word at this place."""
        return next(clause for clause in self.clauses if clause.start <= place < clause.end)

    def _tells(self, place: int) -> bool:
        return place not in self._measured and _tells_as_content(self.keys[place])

    def _joins_numbers(self, at: int) -> bool:
        """True for the "and" of "between 10 and 18" and "between May and July"."""
        return 0 < at < len(self.keys) - 1 and all(map(self._is_amount, (at - 1, at + 1)))

    def _is_amount(self, at: int) -> bool:
        key = self.keys[at]
        return is_number(key) or (self.words[at][0].isupper() and key in english().months | english().weekdays)

    def _read_clauses(self) -> Iterator[Clause]:
        keys = self.keys
        starts = [0, *filter(self._begins_clause, range(1, len(keys))), len(keys)]
        inherited: frozenset[str] = frozenset()
        for start, end in pairwise(starts):
            own = frozenset(keys[place] for place in range(start, end) if self._tells(place))
            yield Clause(
                start=start,
                end=end,
                own=own,
                light=frozenset(keys[start:end]) & english().light.keys(),
                inherited=inherited,
                negations=tuple(self._denials(start, end)),
                supposed=keys[start] in _SUPPOSING,
            )
            inherited |= own

    def _begins_clause(self, at: int) -> bool:
        known, keys = english(), self.keys
        mark, word = self.pauses.get(at), keys[at]
        if mark in {";", ":"} or word in known.turns or word in known.exceptions or (mark and word == "not"):
            return True
        if word == "that" and at + 1 < len(keys) and keys[at + 1] in known.auxiliaries:
            return True
        if mark == "," or word in known.joins:
            following = keys[at + 1 : at + _NEAR]
            for place, after in enumerate(following):
                if after in known.joins or at + 1 + place in self.pauses:
                    return False
                if after in known.auxiliaries:
                    return True
                if 0 < place < _SOON and word in known.joins and is_past(self.words[at + 1 + place]):
                    return is_content(following[place - 1])
        return False

    def _denials(self, start: int, end: int) -> Iterator[int]:
        known, keys = english(), (*self.keys, "", "")
        for at in range(start, end):
            word, after = keys[at], keys[at + 1]
            denies = word in known.negations and (word, after) not in known.harmless and not is_number(after)
            refuses = self.words[at].lower() in _REFUSING and after == "to" and not is_number(keys[at + 2])
            is_without = word == "free" and at and is_content(keys[at - 1]) and after in {"", "of"}
            denies = denies and not self._denies_limit(at)
            if word in known.exceptions or denies or refuses or is_without:
                yield at

    def _denies_limit(self, at: int) -> bool:
        """True for the "not" of "do not take more than 8", which says "at most"."""
        for place in range(at + 1, min(len(self.keys) - 1, at + _SOON)):
            end = place + 1 + (self.keys[place + 1] == "than")
            is_limit = self.keys[place : place + 1] == ("exceed",) or (
                self.words[place].lower() in _COMPARING and end > place + 1
            )
            if is_limit and is_number("".join(self.keys[end : end + 1])):
                return True
        return False


def _words(text: str) -> tuple[tuple[str, ...], Mapping[int, str]]:
    """The words but an answering "No,", and the marks between them, by the place of the word that follows."""
    words: list[str] = []
    pauses: dict[int, str] = {}
    for piece in _PAUSE.split(_REPLY.sub("", text)):
        if piece.strip() in _MARKS:
            pauses[len(words)] = piece.strip()
            continue
        words += tokens(piece)
        if len(words) == 1 and words[0].lower() in _ANSWERS:
            words.clear()
        if len(words) > _MOST_TOKENS:
            break
    return tuple(words[:_MOST_TOKENS]), pauses


def _with_phrases(keys: tuple[str, ...]) -> tuple[str, ...]:
    """The keys; a verb that means something else with the next word has the key of that: "turn off", "give up"."""
    phrases = english().phrases
    if "longer" in keys:
        keys = tuple(
            "still" if one == "longer" and before == "no" and after != "than" else one
            for before, one, after in zip(("", *keys), keys, (*keys[1:], ""), strict=False)
        )
    if phrases.keys().isdisjoint(pairwise(keys)):
        return keys
    return tuple(phrases.get(pair, pair[0]) for pair in pairwise((*keys, "")))


def is_past(word: str) -> bool:
    """True for what is written as the past of a verb."""
    return word.endswith("ed") or word.lower() in english().past


def compared(word: str) -> str:
    """What a key is compared by: "includes" by "include", "goes" by "go"."""
    return "include" if word in _INCLUDING else english().light.get(word, word)


def tells(word: str) -> bool:
    """True for the key of a word that is compared."""
    return (is_content(word) and not is_number(word) and word not in _LITTLE) or word == "include"


@lru_cache(maxsize=1 << 15)
def _tells_as_content(word: str) -> bool:
    return tells(word) and word not in english().denying


@cache
def may_be_elsewhere() -> frozenset[str]:
    """Words that may be held in another form: as a part of a quantity, by an opposite, by what they deny."""
    known = english()
    phrases = {first for first, _ in known.phrases} | {"degre", "usa", "u"}
    return known.denying | known.opposites.keys() | known.units.keys() | known.scales.keys() | phrases


def may_turn(keys: Iterable[str]) -> bool:
    """False for a sentence with these keys that neither denies nor ends anything."""
    return not _turning_keys().isdisjoint(keys)


@cache
def _turning_keys() -> frozenset[str]:
    known = english()
    return known.negations | known.exceptions | known.ending | {"free", "unless", *map(key, _REFUSING)}
