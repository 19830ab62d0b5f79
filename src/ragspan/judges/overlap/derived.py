"""Claims that words can neither support nor contradict: a derived number, a bare yes or no, "the contexts do not say".

A number that no context holds may still be right: the sum, the difference, the product or the share of numbers that are there.
Such a claim is neither found nor denied by a comparison of words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain, combinations, islice, permutations
from operator import and_

from ragspan.judges.overlap.context_reader import Context
from ragspan.judges.overlap.shared_words import SharedWords
from ragspan.text.keys import MONTHS, is_content, is_number
from ragspan.text.languages import ENGLISH, Language
from ragspan.text.sentences import Sentence

DERIVED = "a number follows from others"
SHORT = "it says little more than yes or no"
AMBIGUOUS = "a date in digits can be read in two ways"
DECLINES = "it says that the contexts hold no answer"
ELSEWHERE = "a number stands in another place than the rest of the sentence"
DENIED_NEAR = "it says yes, and a sentence nearby says no"
"""Why a claim is unsure."""
ALWAYS = frozenset({DERIVED, SHORT, AMBIGUOUS, DECLINES})
"""Those that hold whatever else words show; the others only of a claim that words support."""
OPEN = frozenset({DERIVED, ELSEWHERE, DENIED_NEAR})
"""Those that decide whether a response passes."""

_MOST_OPERANDS, _MOST_DERIVED = 12, 3
_TOLERANCE = 0.005
"""How far a number may be from a product or a share, of itself: answers round."""
_YEARS = range(1000, 2101)
"""Numbers that are hardly ever a product."""
_FEW_WORDS = 3
_LITTLE = 0.5
_DIGITS = re.compile(r"(?:\D*\d){2}")
_TIME = re.compile(r"\d{1,2}:\d\d")
_DIGITS_COMPARED = 6
_WHOLE = 100.0
"""Per cent."""
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,9})?")


def is_exact(number: str) -> bool:
    """Whether a number, as it is written, is more than a count of what an answer lists: it has two digits or more."""
    return _DIGITS.match(number) is not None


def is_derived(keys: Collection[str], own: Iterable[str], near: Iterable[str]) -> bool:
    """Whether all of these numbers follow from two others, of which one stands in the claim or the question; for products both.

    Numbers of one digit never do, nor do many at once: too many others would make each.

    Args:
        keys: the numbers that no context holds.
        own: the keys of the claim and the question.
        near: the keys of the sentences that the claim rests on.
    """
    own, near = ([key for key in some if key[:1].isdigit()] for some in (own, near))
    if _is_time_between(keys, [*own, *near]):
        return True
    values = list(_values(keys))
    if not len(values) == len(frozenset(keys)) <= _MOST_DERIVED or not all(map(is_exact, keys)):
        return False
    mine = [*islice(_values(key for key in own if key not in keys), _MOST_OPERANDS)]
    others = [*mine, *islice(_values(near), _MOST_OPERANDS)]
    return all(_is_sum(value, mine, others) or (value not in _YEARS and _is_product(value, mine)) for value in values)


def _is_sum(value: float, mine: Sequence[float], others: Sequence[float]) -> bool:
    """Whether a number is the sum or difference of one of the claim's and another, or what two others leave of a hundred."""
    counts = Counter(round(other, _DIGITS_COMPARED) for other in others)
    for one in mine:
        beside = {round(result, _DIGITS_COMPARED) for result in (value - one, one - value, value + one)}
        if counts.keys() & (beside - {round(one, _DIGITS_COMPARED)}):
            return True
    left = ((one, round(_WHOLE - value - one, _DIGITS_COMPARED)) for one in counts)
    return any(counts[rest] > (rest == one) for one, rest in left)


def is_ambiguous_date(text: str, absent: Collection[str], shared: SharedWords) -> bool:
    """Whether absent numbers are of a date as "05/03/2024" of which a context sentence has one of two readings."""
    for one, other, year in _EITHER_WAY.findall(text):
        for day, month in ((one, other), (other, one)):
            keys = (str(int(day)), ENGLISH.key(MONTHS[int(month) - 1]), year)
            if {str(int(one)), str(int(other))}.issuperset(absent) and reduce(and_, map(shared.sentences_with, keys)):
                return True
    return False


_EITHER_WAY = re.compile(r"(?<![\d/])(0?[1-9]|1[0-2])/(0?[1-9]|1[0-2])/(\d{4})(?![\d/])")


def _is_time_between(keys: Collection[str], beside: Iterable[str]) -> bool:
    """Whether numbers are the hours or minutes between two times: "six hours" from 08:12 to 14:30."""
    clock = [
        int(hour) * 60 + int(minute)
        for hour, _, minute in (key.partition(":") for key in beside if ":" in key and _TIME.fullmatch(key))
    ]
    spans = {abs(one - other) for one, other in combinations(clock[:_MOST_OPERANDS], 2)} - {0}
    known = {str(value) for span in spans for value in (span, span // 60, round(span / 60), span % 60)}
    return bool(keys) and known.issuperset(keys)


def _values(keys: Iterable[str]) -> Iterator[float]:
    return (float(key) for key in dict.fromkeys(keys) if _NUMBER.fullmatch(key))


def _is_product(value: float, mine: Sequence[float]) -> bool:
    """Whether a number is about the product, the ratio or the share of two others."""
    found = [
        result
        for one, other in permutations(mine, 2)
        for result in (
            *(one * other, one * other / 100, (100 - one) * other / 100),
            *((one / other, 100 * one / other) if other else ()),
        )
    ]
    least, most = (1 - _TOLERANCE) * value, (1 + _TOLERANCE) * value
    return any(least <= result <= most for result in found)


def is_short_reply(
    claim: Sentence, telling: Collection[str], asked: Collection[str], window: float, spoken: Language
) -> bool:
    """Whether a claim is a yes or no with a few words of the question that no context holds close together."""
    begins = claim.words[:1] and claim.words[0].lower() in spoken.replies
    return bool(begins) and window < _LITTLE and len(frozenset(telling) - frozenset(asked)) < _FEW_WORDS


def is_number_elsewhere(
    claim: Sentence, contexts: Sequence[Context], shared: SharedWords, question: Collection[str]
) -> bool:
    """Whether a number of a claim stands in contexts, but not near most of its words, where another one of its kind does."""
    numbers = [at for at, key in enumerate(claim.keys) if is_number(key) and key in shared and key not in question]
    for place in shared.closest(frozenset(filter(is_content, claim.keys)), 1) if numbers else ():
        context = contexts[place.context]
        if not context.prose >> place.sentence & 1:
            continue
        span = range(max(0, place.sentence - 1), min(len(context), place.sentence + 2))
        near = [*chain.from_iterable(map(context.keys_of, span))]
        known = frozenset(near)
        rivals = [at for at, key in enumerate(near) if is_number(key) and key not in claim.keys]
        for at in numbers:
            if claim.keys[at] not in known and any(_are_alike(claim.keys, at, near, other) for other in rivals):
                return True
    return False


def _are_alike(ours: Sequence[str], at: int, theirs: Sequence[str], other: int) -> bool:
    """Whether the word after or before is the same for both numbers."""
    after = ours[at + 1 : at + 2], theirs[other + 1 : other + 2]
    before = ours[max(0, at - 1) : at], theirs[max(0, other - 1) : other]
    return any(list(mine) == list(held) and any(map(is_content, mine)) for mine, held in (after, before))


def is_unrelated(question: frozenset[str], contexts: Sequence[Context]) -> bool:
    """Whether the contexts have hardly a word of the question."""
    held = frozenset().union(*(context.held(question) for context in contexts))
    return bool(question) and len(held) < _HARDLY * len(question)


_HARDLY = 0.2
