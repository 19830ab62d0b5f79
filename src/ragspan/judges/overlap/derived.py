"""Claims that words can neither support nor contradict: a derived number, a bare yes or no, "the contexts do not say".

A number that no context holds may still be right: the sum, the difference, the product or the share of numbers that are there.
Such a claim is neither found nor denied by a comparison of words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import chain, combinations, islice, permutations, takewhile
from operator import and_

from ragspan.judges.overlap.context_reader import Context, Place
from ragspan.judges.overlap.shared_words import SharedWords
from ragspan.text.keys import MONTHS, is_content, is_negation, is_number
from ragspan.text.languages import ENGLISH, Language
from ragspan.text.sentences import Sentence
from ragspan.text.vocabulary import word_set

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
SENTENCES_NEAR = 3
"""Sentences that a claim rests on; numbers of those beside them need units."""
_REACH = 3
"""Words after a number among which one says what it counts."""
_CURRENCIES = frozenset("$€£")
_SUMMING = word_set("than differ total sum altogeth combin together more less cheaper save remain left both")
"""Words of a claim that gives a sum or a difference."""
_TOLERANCE = 0.005
"""How far a number may be from a product or a share, of itself: answers round."""
_YEARS = range(1000, 2101)
"""Numbers that are hardly ever a product."""
_FEW_WORDS = 3
_STOPS = frozenset(",.;:!-")
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


def is_derived(
    keys: Collection[str],
    said: Sequence[str],
    beside: Iterable[str],
    near: Sequence[Sequence[str]],
    *,
    has_units: bool = True,
) -> bool:
    """Whether all of these numbers follow from two others.

    One of the two stands in the claim or the question, for products and shares both. Or both stand in the sentences that the
    claim rests on, and units say that they belong together. Numbers of one digit need units, and many at once never follow: too
    many others would make each.

    Args:
        keys: the numbers that no context holds.
        said: the keys of the claim.
        beside: those of the question and of the claim before.
        near: those of each sentence that the claim rests on, and then of those beside them.
        has_units: the word after a number says what it counts, as in languages with spaces.
    """
    own = [key for key in (*said, *beside) if key[:1].isdigit()]
    held = [key for key in chain.from_iterable(near[:SENTENCES_NEAR]) if key[:1].isdigit()]
    if _is_time_between(keys, [*own, *held]):
        return True
    values = list(_values(keys))
    if not len(values) == len(frozenset(keys)) <= _MOST_DERIVED:
        return False
    counted = _counted(tuple(said))
    own_counts = (one for one in counted if one.key not in keys or not is_exact(one.key))
    others = list(dict.fromkeys(chain(chain.from_iterable(map(_counted, map(tuple, near))), own_counts)))
    is_summed = not _SUMMING.isdisjoint(said)
    new = [one for one in counted if one.key in keys]
    sought = [one for one in new if is_exact(one.key)] or new
    if has_units and sought and all(_follows(one, others[:_MOST_OPERANDS], is_summed=is_summed) for one in sought):
        return True
    if not all(map(is_exact, keys)):
        return False
    mine = [*islice(_values(key for key in own if key not in keys), _MOST_OPERANDS)]
    around = [*mine, *islice(_values(held), _MOST_OPERANDS)]
    shares = around if "%" in said else []
    return all(
        _is_sum(value, mine, around) or _is_rest(value, shares) or (value not in _YEARS and _is_product(value, mine))
        for value in values
    )


def sentences_near(places: Sequence[Place], contexts: Sequence[Context]) -> list[list[str]]:
    """The keys of some sentences, then of those beside them; of the first few sentences where there are no places."""
    every = (Place(at, one) for at, context in enumerate(contexts) for one in range(len(context)))
    beside = (Place(context, sentence + step) for step in (0, -1, 1) for context, sentence in places)
    found = dict.fromkeys(beside if places else islice(every, SENTENCES_NEAR))
    return [contexts[at].keys_of(one) for at, one in found if 0 <= one < len(contexts[at])]


@dataclass(frozen=True, slots=True)
class _Counted:
    """A number with the words that say what it counts."""

    key: str
    value: float
    units: frozenset[str]
    first: str
    """The word after it."""


@lru_cache(maxsize=1 << 10)  # claims of one response rest on the same sentences
def _counted(keys: tuple[str, ...]) -> tuple[_Counted, ...]:
    return tuple(_read_counted(keys))


def _read_counted(keys: Sequence[str]) -> Iterator[_Counted]:
    for at, key in enumerate(keys):
        if is_number(key) and _NUMBER.fullmatch(key):
            after = takewhile(lambda word: not is_number(word), keys[at + 1 : at + 1 + _REACH])
            before = [word for word in keys[max(0, at - 1) : at] if word in _CURRENCIES]
            yield _Counted(
                key, float(key), frozenset([*before, *filter(is_content, after)]), "".join(keys[at + 1 : at + 2])
            )


def _follows(number: _Counted, others: Sequence[_Counted], *, is_summed: bool) -> bool:
    """Whether a number is made of two others that count the same or, as a product, of one that does."""
    others = [one for one in others if one.value and one.key != number.key]
    made = _made_of(number, others, is_summed=is_summed)
    return any(abs(result - number.value) <= _TOLERANCE * number.value for result in made)


def _made_of(number: _Counted, others: Sequence[_Counted], *, is_summed: bool) -> Iterator[float]:
    if "%" in number.units:
        for one, other in permutations([one for one in others if "%" not in one.units], 2):
            yield from (100 * other.value / one.value, 100 * abs(one.value - other.value) / one.value)
        return
    for year, later in combinations([one.value for one in others if one.value in _YEARS], 2):
        yield abs(year - later)
    for one in others:
        counting = one.units & number.units
        for other in others if counting else ():
            if "%" in other.units:
                yield from (one.value * (100 + sign * other.value) / 100 for sign in (1, -1))
                yield one.value * other.value / 100
            elif one.first == number.first and one.units.isdisjoint(other.units):
                yield one.value * other.value
            elif is_summed and other.units & counting and one is not other:
                yield from (one.value + other.value, one.value - other.value)


def _is_sum(value: float, mine: Sequence[float], others: Sequence[float]) -> bool:
    """Whether a number is the sum or difference of one of the claim's and another."""
    found = {round(other, _DIGITS_COMPARED) for other in others}
    for one in mine:
        beside = {round(result, _DIGITS_COMPARED) for result in (value - one, one - value, value + one)}
        if found & (beside - {round(one, _DIGITS_COMPARED)}):
            return True
    return False


def _is_rest(value: float, others: Sequence[float]) -> bool:
    """Whether a number is what two others leave of a hundred."""
    counts = Counter(round(other, _DIGITS_COMPARED) for other in others)
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
    known |= {f"{span / 60:g}" for span in spans}
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
    claim: Sentence, telling: Collection[str], asked: Collection[str], held: float, spoken: Language
) -> bool:
    """Whether a claim is a yes or no with a few words of the question, of which contexts hold the share `held` close together."""
    if held >= _LITTLE:
        return False
    words = [word.lower() for word in claim.words]
    content = [word for word, key in zip(words, claim.keys, strict=True) if is_content(key)]
    if all(word in spoken.replies for word in content):
        return True  # "That's right."
    if len(words) <= _FEW_WORDS and len(content) == 1 and any(map(is_negation, claim.keys)):
        return True  # "Unfortunately not."
    # "No fee is mentioned." states a fact, and does not reply
    is_determiner = is_negation(claim.keys[0]) and claim.text[len(words[0]) :][:1] not in _STOPS
    return words[0] in spoken.replies and not is_determiner and len(frozenset(telling) - frozenset(asked)) < _FEW_WORDS


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
