"""Contradictions in languages other than English: another number, another name, or a denial on one side only.

All other kinds need tables of opposites, units and verbs, which only English has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ragspan.judges.overlap.context_reader import Context
from ragspan.judges.overlap.contradictions import Contradiction
from ragspan.judges.overlap.contradictions.sentence_parts import Part, parts_of
from ragspan.judges.overlap.shared_words import SharedWords
from ragspan.text.keys import MARK, is_content, is_negation, is_number
from ragspan.text.languages import Language
from ragspan.text.languages.writing import without_accents
from ragspan.text.sentences import Sentence

_NEAREST = 2
_ABOUT = 0.4
"""The share of the context sentence's words that the claim has to hold before a denial counts."""
_ENOUGH = 0.6
"""The share of the claim's words, without its numbers, that a context sentence has to hold to be compared."""
_LONGEST_LIMIT, _REACH = 3, 4
"""Words of a limit, and words before it among which one denies it."""
_COMPARING = frozenset({"more", "less"})
_BEFORE, _AROUND = 2, 3
"""Words before and after a denial that it may deny."""


def find_in_other_language(
    claim: Sentence,
    contexts: Sequence[Context],
    shared: SharedWords,
    language: Language,
    question: frozenset[str] = frozenset(),
) -> Contradiction | None:
    """What a claim says otherwise than the nearest context sentence, unless another one that is as near agrees.

    `question` holds the keys of the question, whose numbers a claim may repeat.
    """
    words = [key for key in claim.keys if is_content(key) and not is_number(key)]
    found: Contradiction | None = None
    for place in shared.closest(words, _NEAREST):
        sentence = contexts[place.context].sentence(place.sentence)
        if contexts[place.context].structured or not _may_rest(words, sentence):
            continue
        said = (
            _other_number(claim, sentence, shared, question)
            or _other_date(claim, sentence, shared, language, question)
            or _other_name(claim, sentence, shared, language)
            or _other_limit(claim, sentence, language)
            or _denial_on_one_side(claim, sentence, language)
        )
        if said is None:
            return None
        found = found or said
    return found


def _may_rest(words: Sequence[str], sentence: Sentence) -> bool:
    """Whether a sentence has enough of a claim's words, with these accents or others."""
    own, theirs = set(words), set(sentence.keys)
    held = len(own & theirs)
    if held < _ENOUGH * len(own):
        held = len(set(map(without_accents, own)) & set(map(without_accents, theirs)))
    return held >= _ENOUGH * len(own)


def _other_number(
    claim: Sentence, sentence: Sentence, shared: SharedWords, question: frozenset[str]
) -> Contradiction | None:
    ours, theirs = (
        {key: word for key, word in zip(side.keys, side.words, strict=True) if is_number(key)}
        for side in (claim, sentence)
    )
    other = [word for key, word in ours.items() if key not in theirs and key not in shared and key not in question]
    instead = [word for key, word in theirs.items() if key not in ours]
    return Contradiction(kind="number", response=other[0], context=instead[0]) if other and instead else None


def _other_date(
    claim: Sentence, sentence: Sentence, shared: SharedWords, language: Language, question: frozenset[str]
) -> Contradiction | None:
    """A day of the week or a month that no context has, where the sentence has another one."""
    for names in language.calendar:
        ours, theirs = (
            {key: word for key, word in zip(side.keys, side.words, strict=True) if key in names}
            for side in (claim, sentence)
        )
        other = [word for key, word in ours.items() if key not in theirs and key not in shared and key not in question]
        instead = [word for key, word in theirs.items() if key not in ours]
        if other and instead:
            return Contradiction(kind="date", response=other[0], context=instead[0])
    return None


def _other_name(claim: Sentence, sentence: Sentence, shared: SharedWords, language: Language) -> Contradiction | None:
    """A name that no context holds, where the sentence has another one beside all of the claim's other words."""
    if language.capitalises_nouns:
        return _other_part_of_name(claim, sentence, shared)
    ours, theirs = set(claim.keys), set(sentence.keys)
    plain = set(map(without_accents, theirs))
    new = [word for key, word in _capitalised(claim) if key not in shared and without_accents(key) not in plain]
    instead = [word for key, word in _capitalised(sentence) if key not in ours]
    rest = {key for key in ours if is_content(key) and key in shared}
    absent = sum(is_content(key) and key not in shared and without_accents(key) not in plain for key in claim.keys)
    if not new or not instead or len(new) < absent or not rest or not rest <= theirs:
        return None
    return Contradiction(kind="name", response=" ".join(new), context=" ".join(instead[: len(new)]))


def _other_part_of_name(claim: Sentence, sentence: Sentence, shared: SharedWords) -> Contradiction | None:
    """A name of two parts where the sentence has another one, in a language in which other words have capitals too.

    One part is the same, "Anna Schneider" for "Anna Schmidt"; or both are others, and the sentence has all other words.
    """
    plain, rest = (set(map(_plain, side)) for side in (sentence.words, _telling(claim)))
    for at, pair in _pairs_of_names(claim):
        said = list(map(_plain, claim.words[at : at + 2]))
        new = [one for key, one in zip(pair, said, strict=True) if key not in shared and one not in plain]
        for other, _ in _pairs_of_names(sentence) if new else ():
            instead = list(map(_plain, sentence.words[other : other + 2]))
            is_part = len(new) == 1 and any(one == two for one, two in zip(said, instead, strict=True))
            is_whole = len(new) == len(pair) and rest.difference(said) <= plain
            if (is_part or is_whole) and not rest.issuperset(instead):
                return Contradiction(
                    kind="name",
                    response=" ".join(claim.words[at : at + 2]),
                    context=" ".join(sentence.words[other : other + 2]),
                )
    return None


def _plain(word: str) -> str:
    return without_accents(word.lower())


def _telling(said: Sentence) -> list[str]:
    """The words of content that are not numbers."""
    pairs = zip(said.keys, said.words, strict=True)
    return [word for key, word in pairs if is_content(key) and not is_number(key)]


def _pairs_of_names(said: Sentence) -> Iterator[tuple[int, tuple[str, str]]]:
    """Two words in a row with capitals, with the place of the first."""
    for at, pair in enumerate(pairwise(said.keys)):
        if all(is_content(key) and not is_number(key) for key in pair) and all(
            word[0].isupper() for word in said.words[at : at + 2]
        ):
            yield at, pair


def _capitalised(said: Sentence) -> list[tuple[str, str]]:
    """Keys and words with a capital; the first word only if the next one has one, too."""
    pairs = list(zip(said.keys, said.words, strict=True))
    found = [at for at, (key, word) in enumerate(pairs) if word[0].isupper() and is_content(key)]
    return [pairs[at] for at in found if at or 1 in found]


def _denial_on_one_side(claim: Sentence, sentence: Sentence, language: Language) -> Contradiction | None:
    denied, kept = _differing(*(_without_limits(said, language) for said in (claim, sentence)))
    denying, denials, other = (claim, denied, sentence) if denied else (sentence, kept, claim)
    if bool(denied) == bool(kept) or not _is_about(claim.keys, sentence.keys):
        return None
    said = {denying.keys[at] for at in denials}
    if _near(said, parts_of(denying.read or denying.text, language)).isdisjoint(other.keys):
        return None
    return Contradiction(kind="negation", response=_denial(claim, language), context=_denial(sentence, language))


def _other_limit(claim: Sentence, sentence: Sentence, language: Language) -> Contradiction | None:
    """A number that is the most in one sentence, and the least in the other."""
    ours, theirs = (dict(_limits(said, language)) for said in (claim, sentence))
    for number, limit in ours.items():
        other = theirs.get(number)
        if other is not None and other.sign != limit.sign:
            return Contradiction(
                kind="quantifier",
                response=" ".join(claim.words[limit.start : limit.end]),
                context=" ".join(sentence.words[other.start : other.end]),
            )
    return None


@dataclass(frozen=True, slots=True)
class _Limit:
    sign: str
    """`<` or `>`."""
    start: int
    end: int
    denial: frozenset[int]
    """The places of the words that deny it: "nicht mehr als"."""


def _limits(said: Sentence, language: Language) -> Iterator[tuple[str, _Limit]]:
    """The numbers of a sentence with a limit before them, each with the limit."""
    words = [word.lower() for word in said.words]
    for at, key in enumerate(said.keys if language.limits else ()):
        if not is_number(key):
            continue
        for start in range(max(0, at - _LONGEST_LIMIT), at):
            sign = language.limits.get(" ".join(words[start:at]))
            if sign is None:
                continue
            denial = [place for place in range(max(0, start - _REACH), start) if is_negation(said.keys[place])]
            upper = sign == "<" or (sign in _COMPARING and (sign == "more") == bool(denial))
            yield key, _Limit("<" if upper else ">", start, at + 1, frozenset(denial if sign in _COMPARING else ()))
            break


def _without_limits(said: Sentence, language: Language) -> list[str]:
    """The keys, where a word that denies a limit is not a denial: "nicht mehr als 8" is "höchstens 8"."""
    denials = frozenset().union(*(limit.denial for _, limit in _limits(said, language)))
    return [MARK + key[1:] if at in denials else key for at, key in enumerate(said.keys)]


def _differing(ours: Sequence[str], theirs: Sequence[str]) -> tuple[list[int], list[int]]:
    """The places of the denials on both sides; where one side has all of the other's and more, only of those."""
    denied, kept = ([at for at, key in enumerate(keys) if is_negation(key)] for keys in (ours, theirs))
    said, held = {ours[at] for at in denied}, {theirs[at] for at in kept}
    if said and held and (said < held or held < said):
        return [at for at in denied if ours[at] not in held], [at for at in kept if theirs[at] not in said]
    return denied, kept


def _is_about(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """True where the context sentence is about little else than the claim."""
    words = {key for key in theirs if is_content(key)}
    return len(words & set(ours)) >= _ABOUT * len(words)


def _near(denials: Collection[str], parts: Sequence[Part]) -> frozenset[str]:
    """What may be denied: the content around the denials, in the same parts of the sentence."""
    return frozenset(
        key
        for part in parts
        for at, denial in enumerate(part.keys)
        if denial in denials
        for key in part.keys[max(0, at - _BEFORE) : at + _AROUND + 1]
        if is_content(key)
    )


def _denial(said: Sentence, language: Language) -> str:
    """The words around the denial, or the last ones where there is none."""
    at = next((at for at, key in enumerate(said.keys) if is_negation(key)), len(said.keys) - 1)
    return " ".join(language.spelled(said.words[max(0, at - _AROUND) : at + _AROUND + 1]))
