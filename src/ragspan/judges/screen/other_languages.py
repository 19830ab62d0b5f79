"""Findings in other languages than English: another number or date, or a denial on one side only."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ragspan.judges.screen.evidence import Evidence
from ragspan.judges.screen.finding import Finding
from ragspan.text.keys import is_content, is_negation, is_number
from ragspan.text.languages import Language
from ragspan.text.sentences import Sentence, read_sentence

_NEAREST = 2
_ABOUT, _ENOUGH = 0.4, 0.6
"""The share of a context sentence's words that a claim has to hold before a denial counts, and of the claim's that it has to hold."""
_AROUND = 3
"""Words before and after a denial that it may deny."""


def find_in_other_language(
    claim: Sentence, evidence: Evidence, language: Language, question: Collection[str]
) -> Finding | None:
    """What a claim says otherwise than the nearest context sentence, unless another one that is as near agrees."""
    words = {key for key in claim.keys if is_content(key) and not is_number(key)}
    found: Finding | None = None
    for place in evidence.closest(words, _NEAREST):
        context = evidence.contexts[place.context]
        sentence = context.fact(read_sentence, place.sentence)
        if context.structured or len(words.intersection(sentence.keys)) < _ENOUGH * len(words):
            continue
        said = _other(claim, sentence, evidence, language, question) or _denial_on_one_side(claim, sentence, language)
        if said is None:
            return None
        kind, ours, theirs = said
        found = found or Finding(kind=kind, response=ours, context=theirs, place=place)
    return found


def _other(
    claim: Sentence, sentence: Sentence, evidence: Evidence, language: Language, question: Collection[str]
) -> tuple[str, str, str] | None:
    """A number, a day of the week or a month that no context has, where the sentence has another one."""
    for kind, names in (("number", None), *(("date", names) for names in language.calendar)):
        ours, theirs = (
            {key: at for at, key in enumerate(side.keys) if (is_number(key) if names is None else key in names)}
            for side in (claim, sentence)
        )
        other = [at for key, at in ours.items() if key not in theirs and key not in evidence and key not in question]
        instead = [at for key, at in theirs.items() if key not in ours]
        if other and instead:
            return kind, *_with_unit(claim, other[0], sentence, instead)
    return None


def _with_unit(claim: Sentence, at: int, sentence: Sentence, others: Sequence[int]) -> tuple[str, str]:
    """Two numbers, each with the word that both have after them: "25 euros" in place of "25"."""
    following = claim.keys[at + 1 : at + 2]
    other = next((place for place in others if following and sentence.keys[place + 1 : place + 2] == following), None)
    if other is None or not is_content(following[0]):
        return claim.words[at], sentence.words[others[0]]
    return " ".join(claim.words[at : at + 2]), " ".join(sentence.words[other : other + 2])


def _denial_on_one_side(claim: Sentence, sentence: Sentence, language: Language) -> tuple[str, str, str] | None:
    denied, kept = ([at for at, key in enumerate(side.keys) if is_negation(key)] for side in (claim, sentence))
    theirs = {key for key in sentence.keys if is_content(key)}
    if bool(denied) == bool(kept) or len(theirs.intersection(claim.keys)) < _ABOUT * len(theirs):
        return None
    denying, places, other = (claim, denied, sentence) if denied else (sentence, kept, claim)
    near = {key for at in places for key in denying.keys[max(0, at - _AROUND) : at + _AROUND + 1] if is_content(key)}
    if near.isdisjoint(other.keys):
        return None
    return "negation", _denial(claim, language), _denial(sentence, language)


def _denial(said: Sentence, language: Language) -> str:
    """The words around the denial, or the last ones where there is none."""
    at = next((at for at, key in enumerate(said.keys) if is_negation(key)), len(said.keys) - 1)
    return " ".join(language.spelled(said.words[max(0, at - _AROUND) : at + _AROUND + 1]))
