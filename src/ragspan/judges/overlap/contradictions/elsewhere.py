"""Contradictions in languages other than English: another number, or a denial on one side only.

No more is compared there, because that takes tables: opposites, units, who did what to whom.
"""

from __future__ import annotations

from collections.abc import Sequence

from ragspan.judges.overlap.alignment import Alignment
from ragspan.judges.overlap.claims import Claim
from ragspan.judges.overlap.contexts import Context, ContextSentence
from ragspan.judges.overlap.contradictions.finding import Contradiction
from ragspan.judges.overlap.languages import Language
from ragspan.judges.overlap.text import is_content, is_negation, is_number

_NEAREST = 2
_ABOUT = 0.4
"""Share of the context sentence's words that the claim has to hold before a denial counts."""
_ENOUGH = 0.6
"""Share of the claim's words without its numbers that a context sentence has to hold to be what the claim rests on."""


def find_elsewhere(
    claim: Claim, contexts: Sequence[Context], alignment: Alignment, language: Language
) -> tuple[Contradiction, ...]:
    """What a claim says otherwise than the nearest context sentence, unless another one that is as near agrees."""
    words = [key for key in claim.keys if is_content(key) and not is_number(key)]
    if not words:
        return ()
    found: tuple[Contradiction, ...] = ()
    for place in alignment.closest(words, _NEAREST):
        sentence = contexts[place.context].read_sentence(place.sentence)
        if contexts[place.context].structured or len(set(words) & set(sentence.keys)) < _ENOUGH * len(set(words)):
            continue
        said = _compared(claim, sentence, alignment, language)
        if not said:
            return ()
        found = found or said
    return found


def _compared(
    claim: Claim, sentence: ContextSentence, alignment: Alignment, language: Language
) -> tuple[Contradiction, ...]:
    ours = {key: word for key, word in zip(claim.keys, claim.words, strict=True) if is_number(key)}
    theirs = {key: word for key, word in zip(sentence.keys, sentence.words, strict=True) if is_number(key)}
    other = [word for key, word in ours.items() if key not in theirs and key not in alignment]
    instead = [word for key, word in theirs.items() if key not in ours]
    if other and instead:
        return (Contradiction(kind="number", response=other[0], context=instead[0]),)
    replaced = _other_name(claim, sentence, alignment, language)
    if replaced:
        return (replaced,)
    denied, kept = _differing(_denials(claim.keys), claim.keys, _denials(sentence.keys), sentence.keys)
    if bool(denied) != bool(kept) and _is_shared(claim.keys, denied, sentence.keys, kept):
        return (Contradiction(kind="negation", response=_denial(claim, language), context=_denial(sentence, language)),)
    return ()


def _other_name(
    claim: Claim, sentence: ContextSentence, alignment: Alignment, language: Language
) -> Contradiction | None:
    """A name that no context holds, where the sentence has another one beside all of the claim's other words."""
    if language.capitalises_nouns:
        return None
    ours, theirs = set(claim.keys), set(sentence.keys)
    new = [word for key, word in _capitalised(claim) if key not in alignment]
    instead = [word for key, word in _capitalised(sentence) if key not in ours]
    rest = {key for key in ours if is_content(key) and key in alignment}
    absent = sum(is_content(key) and key not in alignment for key in claim.keys)
    if not new or not instead or len(new) < absent or len(rest) < 1 or not rest <= theirs:
        return None
    return Contradiction(kind="name", response=" ".join(new), context=" ".join(instead[: len(new)]))


def _capitalised(said: Claim | ContextSentence) -> list[tuple[str, str]]:
    """Keys and words that are written with a capital; the first one, too, if the next one is."""
    pairs = list(zip(said.keys, said.words, strict=True))
    found = [at for at, (key, word) in enumerate(pairs) if word[0].isupper() and is_content(key)]
    return [pairs[at] for at in found if at or 1 in found]


def _differing(
    ours: list[int], our_keys: Sequence[str], theirs: list[int], their_keys: Sequence[str]
) -> tuple[list[int], list[int]]:
    """The denials of both sides, without those that both have where one side has more."""
    said, held = {our_keys[at] for at in ours}, {their_keys[at] for at in theirs}
    if not said or not held or said == held or not (said < held or held < said):
        return ours, theirs
    return [at for at in ours if our_keys[at] not in held], [at for at in theirs if their_keys[at] not in said]


def _denials(keys: Sequence[str]) -> list[int]:
    return [at for at, key in enumerate(keys) if is_negation(key)]


def _is_shared(ours: Sequence[str], denied: Sequence[int], theirs: Sequence[str], kept: Sequence[int]) -> bool:
    """True where the other side has what is denied, and the context sentence is about little else."""
    keys, places, others = (ours, denied, theirs) if denied else (theirs, kept, ours)
    words = {key for key in theirs if is_content(key)}
    if len(words & set(ours)) < _ABOUT * len(words):
        return False
    near = [key for at in places for key in keys[max(0, at - _BEFORE) : at + _AROUND + 1] if is_content(key)]
    return not set(near).isdisjoint(others)


def _denial(said: Claim | ContextSentence, language: Language) -> str:
    """The words around the denial, or the last ones where there is none."""
    at = next((at for at, key in enumerate(said.keys) if is_negation(key)), len(said.keys) - 1)
    return " ".join(language.spelled(said.words[max(0, at - _AROUND) : at + _AROUND + 1]))


_BEFORE, _AROUND = 2, 3
