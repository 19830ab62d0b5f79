"""Parts of sentences in any language: what stands between commas, brackets and "and", and which words have changed parts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from ragspan.judges.overlap.context_reader import Context
from ragspan.judges.overlap.contradictions import Contradiction
from ragspan.judges.overlap.shared_words import SharedWords
from ragspan.text.keys import is_content, is_number
from ragspan.text.languages import Language
from ragspan.text.sentences import Sentence

_PAUSE = re.compile(r"[,;:()\[\]\"](?=\s|$)|\s[(\[\"-]{1,2}(?=\s?\S)|\.\s")
_NEAREST = 2
_MOST_PARTS = 8
_OURS, _THEIRS = 0.75, 0.6
"""The share of the words of two parts, in the claim and in the context, that have to be the ones that changed places."""
_OF_NUMBERS = 0.5
"""The share where two numbers did."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some words of a sentence in a row."""

    text: str
    keys: tuple[str, ...]
    content: frozenset[str]


@lru_cache(maxsize=1 << 10)
def parts_of(text: str, language: Language) -> tuple[Part, ...]:
    """Those with content, the first few."""
    return tuple([part for part in _parts(text, language) if part.content][:_MOST_PARTS])


def _parts(text: str, language: Language) -> Iterator[Part]:
    for piece in _PAUSE.split(text):
        words = language.tokens(piece)
        keys = list(map(language.key, words))
        start = 0
        for at, word in enumerate(words):
            if word.lower() in language.joins and not _is_range(keys, at):
                yield _part(words[start:at], keys[start:at])
                start = at + 1
        yield _part(words[start:], keys[start:])


def _is_range(keys: Sequence[str], at: int) -> bool:
    """True for "between 10 and 18"."""
    return 0 < at < len(keys) - 1 and is_number(keys[at - 1]) and is_number(keys[at + 1])


def _part(words: Sequence[str], keys: Sequence[str]) -> Part:
    return Part(" ".join(words), tuple(keys), frozenset(filter(is_content, keys)))


def find_swapped_parts(
    claim: Sentence, contexts: Sequence[Context], shared: SharedWords, language: Language
) -> Contradiction | None:
    """Two parts that have changed words: "A comes first, B last" where the context says "B comes first, A last"."""
    ours = parts_of(claim.read or claim.text, language)
    if len(ours) < 2:  # noqa: PLR2004
        return None
    for theirs in nearest(claim, contexts, shared, language):
        for one, other in combinations(ours, 2):
            if any(one.content | other.content <= held.content for held in theirs):
                continue
            for first, second in combinations(theirs, 2):
                if _have_swapped(one.content, other.content, first.content, second.content):
                    return Contradiction(
                        kind="order", response=f"{one.text}, {other.text}", context=f"{first.text}, {second.text}"
                    )
    return None


def nearest(
    claim: Sentence, contexts: Sequence[Context], shared: SharedWords, language: Language
) -> Iterator[tuple[Part, ...]]:
    """The parts of the context sentences of prose that share most words with a claim."""
    for place in shared.closest(frozenset(filter(is_content, claim.keys)), _NEAREST):
        context = contexts[place.context]
        if context.prose >> place.sentence & 1:
            yield parts_of(context.sentence(place.sentence).text, language)


def _have_swapped(one: frozenset[str], other: frozenset[str], first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether each of two parts holds words of both others, and these are most of their words."""
    if len(one & other) > 1:
        return False
    one, other, first, second = one - other, other - one, first - second, second - first
    crossed = one & first, one & second, other & first, other & second
    if not all(crossed):
        return False
    a, b, c, d = map(len, crossed)
    numbers = [any(map(is_number, words)) for words in crossed]
    are_numbers = (numbers[0] and numbers[3]) or (numbers[1] and numbers[2])
    mine, held = (_OF_NUMBERS, _OF_NUMBERS) if are_numbers else (_OURS, _THEIRS)
    return (
        a + b >= mine * len(one)
        and c + d >= mine * len(other)
        and a + c >= held * len(first)
        and b + d >= held * len(second)
    )


def find_number_of_other_part(
    claim: Sentence, contexts: Sequence[Context], shared: SharedWords, language: Language
) -> Contradiction | None:
    """A number of another part: "a reduced ticket is 9 euros" where the context says "a ticket is 9 euros, a reduced one 5"."""
    said = frozenset(filter(is_content, claim.keys))
    for theirs in nearest(claim, contexts, shared, language):
        for part in parts_of(claim.read or claim.text, language):
            for number, unit in _counted(part):
                found = _number_beside(number, unit, said, theirs)
                if found is not None:
                    return Contradiction(kind="number", response=part.text, context=found.text)
    return None


def _number_beside(number: str, unit: str, said: frozenset[str], theirs: Sequence[Part]) -> Part | None:
    """The part with another number of this unit and with words of the claim that the number's own part lacks."""
    holding = [one for one in theirs if (number, unit) in _counted(one)]
    if len(holding) != 1:
        return None
    (own,) = holding
    for at, other in enumerate(theirs):
        if abs(theirs.index(own) - at) != 1:
            continue
        rivals = [one for one, same in _counted(other) if same == unit and one not in said]
        if not rivals or len(_counted(other)) != len(_counted(own)):
            continue
        here, there = own.content - other.content, other.content - own.content
        is_elided = theirs.index(own) < at
        if here - said and there & said and (is_elided or here & said <= {number}):
            return other
    return None


@lru_cache(maxsize=1 << 10)
def _counted(part: Part) -> tuple[tuple[str, str], ...]:
    """The numbers of a part, each with the word after it."""
    keys = (*part.keys, "")
    return tuple([(key, keys[at + 1]) for at, key in enumerate(part.keys) if is_number(key)])
