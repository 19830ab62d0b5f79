"""Contradictions in languages other than English: another number, another name, or a denial on one side only.

All other kinds need tables of opposites, units and verbs, which only English has.
"""

from __future__ import annotations

from collections.abc import Sequence

from ragspan.judges.overlap.context_reader import Context
from ragspan.judges.overlap.contradictions import Contradiction
from ragspan.judges.overlap.shared_words import SharedWords
from ragspan.text.keys import is_content, is_negation, is_number
from ragspan.text.languages import Language
from ragspan.text.languages.writing import without_accents
from ragspan.text.sentences import Sentence

_NEAREST = 2
_ABOUT = 0.4
"""The share of the context sentence's words that the claim has to hold before a denial counts."""
_ENOUGH = 0.6
"""The share of the claim's words, without its numbers, that a context sentence has to hold to be compared."""
_BEFORE, _AROUND = 2, 3
"""Words before and after a denial that it may deny."""


def find_in_other_language(
    claim: Sentence, contexts: Sequence[Context], shared: SharedWords, language: Language
) -> Contradiction | None:
    """What a claim says otherwise than the nearest context sentence, unless another one that is as near agrees."""
    words = [key for key in claim.keys if is_content(key) and not is_number(key)]
    found: Contradiction | None = None
    for place in shared.closest(words, _NEAREST):
        sentence = contexts[place.context].sentence(place.sentence)
        if contexts[place.context].structured or len(set(words) & set(sentence.keys)) < _ENOUGH * len(set(words)):
            continue
        said = (
            _other_number(claim, sentence, shared)
            or _other_name(claim, sentence, shared, language)
            or _denial_on_one_side(claim, sentence, language)
        )
        if said is None:
            return None
        found = found or said
    return found


def _other_number(claim: Sentence, sentence: Sentence, shared: SharedWords) -> Contradiction | None:
    ours, theirs = (
        {key: word for key, word in zip(side.keys, side.words, strict=True) if is_number(key)}
        for side in (claim, sentence)
    )
    other = [word for key, word in ours.items() if key not in theirs and key not in shared]
    instead = [word for key, word in theirs.items() if key not in ours]
    return Contradiction(kind="number", response=other[0], context=instead[0]) if other and instead else None


def _other_name(claim: Sentence, sentence: Sentence, shared: SharedWords, language: Language) -> Contradiction | None:
    """A name that no context holds, where the sentence has another one beside all of the claim's other words."""
    if language.capitalises_nouns:
        return None
    ours, theirs = set(claim.keys), set(sentence.keys)
    plain = set(map(without_accents, theirs))
    new = [word for key, word in _capitalised(claim) if key not in shared and without_accents(key) not in plain]
    instead = [word for key, word in _capitalised(sentence) if key not in ours]
    rest = {key for key in ours if is_content(key) and key in shared}
    absent = sum(is_content(key) and key not in shared and without_accents(key) not in plain for key in claim.keys)
    if not new or not instead or len(new) < absent or not rest or not rest <= theirs:
        return None
    return Contradiction(kind="name", response=" ".join(new), context=" ".join(instead[: len(new)]))


def _capitalised(said: Sentence) -> list[tuple[str, str]]:
    """Keys and words with a capital; the first word only if the next one has one, too."""
    pairs = list(zip(said.keys, said.words, strict=True))
    found = [at for at, (key, word) in enumerate(pairs) if word[0].isupper() and is_content(key)]
    return [pairs[at] for at in found if at or 1 in found]


def _denial_on_one_side(claim: Sentence, sentence: Sentence, language: Language) -> Contradiction | None:
    denied, kept = _differing(claim.keys, sentence.keys)
    if bool(denied) == bool(kept) or not _is_shared(claim.keys, denied, sentence.keys, kept):
        return None
    return Contradiction(kind="negation", response=_denial(claim, language), context=_denial(sentence, language))


def _differing(ours: Sequence[str], theirs: Sequence[str]) -> tuple[list[int], list[int]]:
    """The places of the denials on both sides; where one side has all of the other's and more, only of those."""
    denied, kept = ([at for at, key in enumerate(keys) if is_negation(key)] for keys in (ours, theirs))
    said, held = {ours[at] for at in denied}, {theirs[at] for at in kept}
    if said and held and (said < held or held < said):
        return [at for at in denied if ours[at] not in held], [at for at in kept if theirs[at] not in said]
    return denied, kept


def _is_shared(ours: Sequence[str], denied: Sequence[int], theirs: Sequence[str], kept: Sequence[int]) -> bool:
    """True where the other side has what is denied, and the context sentence is about little else."""
    keys, places, others = (ours, denied, theirs) if denied else (theirs, kept, ours)
    words = {key for key in theirs if is_content(key)}
    if len(words & set(ours)) < _ABOUT * len(words):
        return False
    near = [key for at in places for key in keys[max(0, at - _BEFORE) : at + _AROUND + 1] if is_content(key)]
    return not set(near).isdisjoint(others)


def _denial(said: Sentence, language: Language) -> str:
    """The words around the denial, or the last ones where there is none."""
    at = next((at for at, key in enumerate(said.keys) if is_negation(key)), len(said.keys) - 1)
    return " ".join(language.spelled(said.words[max(0, at - _AROUND) : at + _AROUND + 1]))
