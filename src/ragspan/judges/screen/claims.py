"""A claim as the findings look at it, and what a screen can quote."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from ragspan.judges.screen.contexts import BEST, Index, Near
from ragspan.judges.screen.facts import Facts, english, same
from ragspan.judges.screen.flags import Flag, clear_flags
from ragspan.text.keys import is_number, key
from ragspan.text.languages import Language
from ragspan.text.lazy import Lazy
from ragspan.text.sentences import Sentence
from ragspan.turns import with_turns

_FEW_CLAIMS = 2
_ENOUGH, _MOST = 0.6, 0.75
"""The share of a claim's words that a context sentence has to hold to be compared: in a response of a sentence or two, and in a longer."""
_DIGITS = re.compile(r"\d+")
_GROUPED = re.compile(r"(?<!\d)\d+(?:[ :/()-]{1,3}\d+){1,12}")  # a number in groups; not of decimals
_FEW_WORDS = 2  # of a claim such as "14 days.", whose numbers may come from any sentence
_FIRST = 40  # sentences of the contexts that are looked through for a number where none has a word of the claim


class Finding(NamedTuple):
    """What a claim says, and what a context says in its place."""

    kind: str
    """`number`, `date`, `unit`, `absent number`, `equation`, `negation`, `opposite`, `name`, `role`, `order` or `flag`."""
    response: str  # the claim's words
    context: str = ""  # the context's words; empty where it says nothing of the kind
    place: int | None = None  # the sentence that has the context's side, or comes closest


class Response:
    """What the claims of one response are compared with. A word of the question does not count as an invention."""

    def __init__(self, index: Index, asked: frozenset[str], language: Language, claims: Sequence[Sentence]) -> None:
        self.index, self.asked, self.language = index, asked, language
        self.is_english = language.code == "en"
        self.lone = len(claims) <= _FEW_CLAIMS  # it is a sentence or two
        self.enough = _ENOUGH if self.lone else _MOST
        self.excused = language.neutral_keys | asked
        self.keys = [key for claim in claims for key in claim.keys]  # from whose numbers others may follow

    @Lazy
    def flags(self) -> list[tuple[frozenset[str], Flag]]:
        """Those of JSON contexts."""
        flags = [flag for context in self.index.contexts for flag in context.flags]
        return clear_flags(flags, map(frozenset, self.index.sentences)) if flags else []


class Claim:
    """One sentence of a response, with what no context holds of it."""

    def __init__(self, sentence: Sentence, content: frozenset[str], response: Response) -> None:
        self.sentence, self.content, self.response, self.index = sentence, content, response, response.index
        self.keys, self.words, self.is_english = sentence.keys, sentence.words, response.is_english
        unheld = {word for word in content if not self.index[word]}
        self.missing = [at for at, word in enumerate(self.keys) if word in unheld] if unheld else []
        """Places of the content words that no context holds."""
        self.absent = frozenset(unheld - response.excused)
        """Their keys, but for those of neutral words and of the question."""

    @Lazy
    def facts(self) -> Facts:
        return Facts(self.sentence)

    @Lazy
    def near(self) -> list[Near]:
        """The context sentences whose clauses and numbers it is compared with; none where no sentence is near enough."""
        if not self.is_english or self.sentence.text.endswith(":"):
            return []
        return self.index.near(self.facts.content, self.opposites, self.response.enough)

    @Lazy
    def opposites(self) -> dict[str, frozenset[str]]:
        """The opposites of its words that have some."""
        known, content = english().opposites, self.facts.content
        return {word: known[word] for word in content & known.keys()}

    @Lazy
    def closest(self) -> list[int]:
        """The context sentences with most of its words."""
        return self.index.closest(self.content, BEST)

    @Lazy
    def resting(self) -> list[int]:
        """The context sentences from which its numbers may come: the closest, or the first ones where none has a word of it."""
        words = sum(not is_number(key) for key in self.content)
        return self.closest or (list(range(len(self.index.sentences)))[:_FIRST] if words <= _FEW_WORDS else [])

    @Lazy
    def restated(self) -> frozenset[str]:
        """The absent numbers that a context writes otherwise: "14 days" as "two weeks", "18" as "18:00", a telephone's with gaps."""
        numbers = {key for key in self.absent if is_number(key)}
        if not numbers:
            return frozenset()
        all_day = "24/7" in self.sentence.text or ("24 hours" in self.sentence.text and self.index["clock"])
        found = {"24", "7"} if all_day else set[str]()  # "around the clock"
        places = filter(self.index.sentences.__getitem__, self.resting)  # none between contexts
        keys, known = {place: self.index.sentences[place] for place in places}, english()
        groups = [_DIGITS.findall(one) for one in _GROUPED.findall(self.sentence.text)]
        numbered = (place for place, there in keys.items() if sum(map(is_number, there)) > (0 if groups else 1))
        for text in with_turns(map(self.index.texts.__getitem__, numbered)):
            found.update(key(part) for parts in groups if "".join(parts) in text for part in parts)
            for parts in with_turns(map(_DIGITS.findall, _GROUPED.findall(text))):
                ends = range(1, len(parts) + 1)
                found.update(key("".join(parts[start:end])) for end in ends for start in range(end))
        stated = {*chain.from_iterable(keys.values())}
        hours = {one: {f"{int(one)}:00", f"{int(one) + 12}:00"} for one in filter(str.isdigit, numbers)}
        found |= {one for one in numbers if one.removesuffix(":00") in stated or stated & hours.get(one, set())}
        sought = [ours for ours in self.facts.quantities if ours.raw in numbers] if self.is_english else []
        is_scaled = any(ours.about for ours in sought) or not known.scales.keys().isdisjoint(self.keys)
        for place, there in with_turns(keys.items()) if sought else ():
            if is_scaled or not known.measuring.isdisjoint(there):
                held = self.index.facts(place).quantities
                found.update(ours.raw for ours in sought if any(same(ours, other) for other in held))
        return frozenset(found & numbers)
