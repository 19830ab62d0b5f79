"""Whether the two sides of a contradiction answer each other, and which sentence of the contexts has the other side.

A rule may find rightly that a claim is wrong by two words that are not counterparts: "Kentucky" and "NCAA". So an explanation sets
two sides beside each other only where they have a place in common: a unit, a word beside them, a verb.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

from ragspan.judges.overlap.context_reader import Context
from ragspan.judges.overlap.contradictions import Contradiction
from ragspan.judges.overlap.english import english
from ragspan.judges.overlap.shared_words import SharedWords
from ragspan.text.keys import MARK, content_of, is_content, is_number
from ragspan.text.languages import Language
from ragspan.text.sentences import Sentence
from ragspan.text.vocabulary import word_set

_MOST_PLACES = 8
_SKIPPED = word_set("the a an its his her their of der die das den dem le la les l el los las il lo i de het o os as")
"""Words between a word and the one that tells its place."""
_NEAR = 4
"""Words on either side of an opposite, of which the context has one beside its own."""
_MOST_APART = 3
"""Words that one description of who does what may be longer than the other."""
_ALIKE = 2 / 3
"""The share of the words of the shorter side that the other has, where one side denies."""
_PER = word_set("per par pro por al je na za a")
_DAY = 2
"""Digits of a day of the month, which tells little without its month."""
_QUANTITIES = frozenset({"number", "unit", "date"})


def placed(
    found: Contradiction, claim: Sentence, contexts: Sequence[Context], shared: SharedWords, language: Language
) -> Contradiction:
    """A contradiction with the sentence that has its other side, and with whether its sides are counterparts."""
    if not found.context:
        return found
    having = reduce(and_, map(shared.sentences_with, frozenset(language.keys(found.context))), -1)
    nearest = shared.closest(content_of(claim.keys), _MOST_PLACES)
    place = next((one for one in nearest if having >> shared.firsts[one.context] + one.sentence & 1), None)
    if place is None and having > 0:
        place = shared.place((having & -having).bit_length() - 1)
    if place is None:
        return found
    sides = (
        _side(claim, found.response, language),
        _side(contexts[place.context].sentence(place.sentence), found.context, language),
    )
    found = replace(found, place=place, faces=_face(found.kind, *sides))
    return _with_unit(found, *sides) if found.faces and found.kind in _QUANTITIES else found


@dataclass(frozen=True, slots=True)
class _Side:
    """What one side says, and where in its sentence."""

    sentence: Sentence
    keys: tuple[str, ...]
    at: int
    """Below 0 where the sentence writes it otherwise."""

    @property
    def end(self) -> int:
        return self.at + len(self.keys)

    def beside(self, *, before: bool) -> int:
        """The place of the next word that is not an article; below 0 where there is none."""
        keys = self.sentence.keys
        places = range(self.at - 1, -1, -1) if before else range(self.end, len(keys))
        return next((at for at in places if keys[at].lstrip(MARK) not in _SKIPPED), -1) if self.at >= 0 else -1


def _side(sentence: Sentence, text: str, language: Language) -> _Side:
    keys = tuple(language.keys(text))
    places = range(len(sentence.keys) - len(keys) + 1)
    return _Side(sentence, keys, next((at for at in places if sentence.keys[at : at + len(keys)] == keys), -1))


def _face(kind: str, ours: _Side, theirs: _Side) -> bool:
    if kind in {"row", "order"}:
        return True
    said, held = ours.keys, theirs.keys
    both = content_of(said) & content_of(held)
    if kind == "role":
        return abs(len(said) - len(held)) <= _MOST_APART and (said[0] == held[0] or said[-1] == held[-1])
    if kind == "negation":
        return len(both) > _ALIKE * max(1, min(len(content_of(said)), len(content_of(held))))
    if kind == "opposite":
        near, beside = (_around(one) for one in (ours, theirs))
        return any(not (one - {*said}).isdisjoint(other - {*held}) for one, other in zip(near, beside, strict=True))
    if kind in _QUANTITIES and _rate(ours) != _rate(theirs):
        return False
    if kind in _QUANTITIES and (
        _measure_the_same(said, held) or (kind == "date" and min(map(len, said + held)) > _DAY)
    ):
        return True
    return any(not is_number(key) for key in both) or any(
        _share_place(ours, theirs, before=side) for side in (True, False)
    )


def _around(side: _Side) -> tuple[frozenset[str], frozenset[str]]:
    """The content words near before and after."""
    keys, at = side.sentence.keys, max(0, side.at)
    return content_of(keys[max(0, at - _NEAR) : at]), content_of(keys[side.end : side.end + _NEAR])


def _share_place(ours: _Side, theirs: _Side, *, before: bool) -> bool:
    """Whether the same word stands before them, or after them."""
    at, other = ours.beside(before=before), theirs.beside(before=before)
    return at >= 0 <= other and ours.sentence.keys[at] == theirs.sentence.keys[other]


def _rate(side: _Side) -> bool:
    """Whether a word like "per" follows the number and its unit."""
    return not _PER.isdisjoint(key.lstrip(MARK) for key in side.sentence.keys[side.end : side.end + 2])


def _measure_the_same(said: Sequence[str], held: Sequence[str]) -> bool:
    units = english().units
    kinds = [{units[key][0] for key in side if key in units} for side in (said, held)]
    return not kinds[0].isdisjoint(kinds[1])


def _with_unit(found: Contradiction, ours: _Side, theirs: _Side) -> Contradiction:
    """Bare numbers with the word that both have beside them: "25 euros" in place of "25"."""
    if len(ours.keys) > 1 or len(theirs.keys) > 1:
        return found
    for before in (False, True):
        at, other = ours.beside(before=before), theirs.beside(before=before)
        if (
            at >= 0 <= other
            and ours.sentence.keys[at] == theirs.sentence.keys[other]
            and is_content(ours.sentence.keys[at])
        ):
            return replace(found, response=_words(ours, at), context=_words(theirs, other))
    return found


def _words(side: _Side, at: int) -> str:
    return " ".join(side.sentence.words[min(at, side.at) : max(at + 1, side.end)])
