"""What has to be exact in a response of any length and in any language: numbers in their place, and identifiers.

A number counts what follows it: "three days a week" where the context has "two days a week" and nowhere "three days".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ragspan.judges.overlap.context_reader import Context, numbers_of
from ragspan.judges.overlap.contradictions import Contradiction
from ragspan.judges.overlap.shared_words import SharedWords
from ragspan.text.keys import is_content, is_number
from ragspan.text.languages import Language
from ragspan.text.sentences import Sentence
from ragspan.text.vocabulary import word_set

_REACH = 3
"""Words after a counted thing among which the next one stands."""
_MOST_SENTENCES = 8
_HEDGES = word_set("about around rough near almost approxim over under least most than up to between from or and")
_AGE = "age"
"""The key of "old": ages are of different people."""
_IDENTIFIER = re.compile(r"(?<![\w$€£.,:/=-])(?!v\d)[A-Za-z]{1,12}-?\d{1,8}[A-Za-z]{0,4}(?![\w-])")
_DIGIT = re.compile(r"\d")
_IN_CODE = re.compile(r"(?<=`)[A-Za-z_]\w{1,40}(?:[._]\w{1,40}){1,4}(?=[`(])")


def find_other_number(claim: Sentence, contexts: Sequence[Context], shared: SharedWords) -> Contradiction | None:
    """A number with two words after it that a context has with another number, where none has it with this one."""
    keys = claim.keys
    for at, key in enumerate(keys[:-1]):
        if not key[:1].isdigit():
            continue
        counted = keys[at + 1]
        if (
            not _counts(keys, at)
            or not is_content(counted)
            or any((key, counted) in held for held in shared.held_pairs)
        ):
            continue
        following = next((one for one in keys[at + 2 : at + 2 + _REACH] if is_content(one) and not is_number(one)), "")
        if not following or following == _AGE:
            continue
        for context, sentence in _sentences(contexts, shared, counted, following):
            theirs = context.keys_of(sentence)
            found = _place_of_other(theirs, key, counted, following)
            beside = shared.content.intersection(theirs, keys) - {counted, following}
            if found >= 0 and not all(map(is_number, beside)) and _are_together(context.sentence(sentence), found):
                return Contradiction(
                    kind="number",
                    response=" ".join(claim.words[at : at + 2]),
                    context=_written(context, sentence, found, found + 2),
                )
    return None


def find_other_direction(claim: Sentence, contexts: Sequence[Context], shared: SharedWords) -> Contradiction | None:
    """What goes the other way: "from 30 to 300" where the context says "from 300 to 30"."""
    for start, end, first, last in _spans(claim.keys):
        for context, sentence in _sentences(contexts, shared, first, last):
            for at, to, one, other in _spans(context.keys_of(sentence)):
                if (one, other) == (last, first):
                    return Contradiction(
                        kind="order",
                        response=" ".join(claim.words[start:end]),
                        context=_written(context, sentence, at, to),
                    )
    return None


def other_identifiers(
    claim: Sentence, shared: SharedWords, question: frozenset[str], language: Language
) -> tuple[str, ...]:
    """The identifiers of a claim, as "SHA1" or "v2", that neither contexts nor question have, with a hyphen or without."""
    found = []
    numbered = _IDENTIFIER.findall(claim.text) if _DIGIT.search(claim.text) else ()
    for one in dict.fromkeys([*numbered, *(_IN_CODE.findall(claim.text) if "`" in claim.text else ())]):
        keys = language.keys(one)
        pairs = set(pairwise(keys))
        if pairs and not question.issuperset(keys) and not any(pairs <= held for held in shared.held_pairs):
            found.append(one)
    return tuple(found)


def _counts(keys: Sequence[str], at: int) -> bool:
    """Whether a key is a number by itself: no time, no part of a range, none that is more or less."""
    before = keys[at - 1] if at else ""
    return is_number(keys[at]) and ":" not in keys[at] and before not in _HEDGES and not is_number(before)


def _sentences(contexts: Sequence[Context], shared: SharedWords, one: str, other: str) -> Iterator[tuple[Context, int]]:
    """The first sentences with two keys."""
    for number in numbers_of(shared.sentences_with(one) & shared.sentences_with(other))[:_MOST_SENTENCES]:
        place = shared.place(number)
        yield contexts[place.context], place.sentence


def _are_together(sentence: Sentence, at: int) -> bool:
    """Whether only a space or a hyphen is between a word and the next one: no comma, as in "by 125, it had"."""
    first, second = sentence.words[at : at + 2]
    return f"{first} {second}" in sentence.text or f"{first}-{second}" in sentence.text


def _place_of_other(keys: Sequence[str], number: str, counted: str, following: str) -> int:
    """Where another number stands with two words; below 0 where there is none."""
    for at in range(len(keys) - 1):
        is_other = keys[at + 1] == counted and keys[at] != number and _counts(keys, at)
        if is_other and following in keys[at + 2 : at + 2 + _REACH]:
            return at
    return -1


def _spans(keys: Sequence[str]) -> Iterator[tuple[int, int, str, str]]:
    """Where keys say "from one to another number", with the numbers."""
    for at, key in enumerate(keys[:-1]):
        if key == "from" and is_number(keys[at + 1]):
            for end in range(at + 2, min(len(keys) - 1, at + 2 + _REACH)):
                if keys[end] == "to" and is_number(keys[end + 1]):
                    yield at, end + 2, keys[at + 1], keys[end + 1]


def _written(context: Context, sentence: int, start: int, end: int) -> str:
    return " ".join(context.sentence(sentence).words[start:end])
