"""What the comparison knows of a language. Word tables are behind this one value; only English has one so far."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from ragspan.judges.overlap.text import key
from ragspan.judges.overlap.vocabulary import pairs_of, rows_of, words_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Tables:
    """The words of one language that the comparison has to understand. All are keys, as `text.key` makes them."""

    opposites: Mapping[str, frozenset[str]]
    """For a key, those that say the opposite, or exclude it."""
    negations: frozenset[str]
    """Words that turn the clause in which they stand."""
    ending: frozenset[str]
    """Verbs that turn a clause where the other side does without them: "support was dropped"."""
    exceptions: frozenset[str]
    """Words that begin what is excepted: "every day except Monday"."""
    denying: frozenset[str]
    """Words of denial, exception and duty, which are compared by what they do and are no content."""
    harmless: frozenset[tuple[str, str]]
    """A negation with the word after it, where it denies nothing: "not only"."""
    auxiliaries: frozenset[str]
    turns: frozenset[str]
    """Words that begin a clause: "but", "if"."""
    joins: frozenset[str]
    """Words that begin a part: "and"."""
    prefixes: tuple[str, ...]
    """Beginnings of words that deny: "un"."""
    general: frozenset[str]
    """Words that a negation may stand before while it denies another: "not possible"."""
    bounds: frozenset[str]
    """Verbs for the ends of a span of time."""
    changing: frozenset[str]
    """Verbs for a change from one thing to another."""
    needed: frozenset[str]
    """Words for what has to be; denied, they leave free."""
    units: Mapping[str, tuple[str, float]]
    """For the key of a unit, what it measures and how many of the base unit it is."""
    scales: Mapping[str, float]
    """Words that multiply the number before them."""
    months: frozenset[str]
    weekdays: frozenset[str]
    light: Mapping[str, str]
    """Verbs too common to be content, which still have a subject and an object; each form with the verb."""
    past: frozenset[str]
    """Past forms of irregular verbs, as they are written."""
    phrases: Mapping[tuple[str, str], str]
    """Two words with the key of the one that they mean."""
    wide: frozenset[str]
    """Nouns that stand for many others."""


def _keys(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(key, words))


@cache
def english() -> Tables:
    words: dict[str, str] = words_of("en/comparison")

    def keys(name: str) -> frozenset[str]:
        return _keys(words[name].split())

    past = [form for _, *forms in rows_of("en/irregular_verbs") for form in forms]
    return Tables(
        opposites=_opposites(),
        negations=keys("negations"),
        denying=keys("denying") - {"not"},
        ending=keys("ending"),
        exceptions=keys("exceptions"),
        harmless=frozenset((key(a), key(b)) for a, b in map(str.split, words["harmless"].split("|"))),
        auxiliaries=keys("auxiliaries"),
        turns=keys("turns"),
        joins=keys("joins"),
        prefixes=tuple(words["prefixes"].split()),
        general=keys("general"),
        bounds=keys("bounds"),
        changing=keys("changing"),
        needed=keys("needed"),
        units={
            key(word): (dimension.replace("_", " "), float(size))
            for dimension, size, *names in rows_of("en/units")
            for word in names
        },
        scales={key(word): float(size) for word, size in pairs_of(words["scales"]).items()},
        months=keys("months"),
        weekdays=keys("weekdays"),
        light={form: forms[0] for forms in map(str.split, words["light"].split("|")) for form in forms},
        past=frozenset(past).union(words["unchanged_past"].split()),
        phrases={(key(first), second): key(word) for first, second, word in rows_of("en/phrases")},
        wide=keys("wide"),
    )


@cache
def _opposites() -> dict[str, frozenset[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)

    def oppose(some: Iterable[str], others: Iterable[str]) -> None:
        for one in some:
            found[one].update(other for other in others if other != one)

    for line in rows_of("en/antonyms"):
        middle = line.index(":")
        left, right = _keys(line[:middle]), _keys(line[middle + 1 :])
        oppose(left, right)
        oppose(right, left)
    for line in rows_of("en/exclusive"):
        oppose(_keys(line), _keys(line))
    oppose(["include"], _keys(["exclude"]))
    oppose(_keys(["exclude"]), ["include"])
    return {word: frozenset(others) for word, others in found.items()}
