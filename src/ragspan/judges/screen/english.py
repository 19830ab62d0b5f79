"""The words of English that the comparison knows. All are keys, as `keys.key` makes them, if nothing else is said."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache

from ragspan.text.keys import key
from ragspan.text.vocabulary import pairs_of, rows_of, words_of


class EnglishWords:
    """Read once, by `english`."""

    def __init__(self) -> None:
        words: dict[str, str] = words_of("en/comparison")
        sets = {name: _keys(some.split()) for name, some in words.items()}
        self.negations, self.exceptions = sets["negations"], sets["exceptions"]
        """Words that turn the clause in which they stand, and that begin what is excepted: "every day except Monday"."""
        self.denying = sets["denying"] - {"not"}
        """Words of denial, exception and duty, which are compared by what they do and are not content."""
        self.ending = sets["ending"]
        """Verbs that turn a clause where the other side does without them: "support was dropped"."""
        self.auxiliaries, self.turns = sets["auxiliaries"], sets["turns"]
        """Forms of "be", "can" and the like; words that begin a clause: "but", "if"."""
        self.breaks = self.turns | {"and", "or"} | self.exceptions
        self.months, self.weekdays = sets["months"], sets["weekdays"]
        self.dated = self.months | self.weekdays | {"one", "may"}  # words that may be a number or a date
        self.harmless = frozenset((key(a), key(b)) for a, b in map(str.split, words["harmless"].split("|")))
        """A negation with the word after it, where it denies nothing: "not only"."""
        self.units: Mapping[str, tuple[str, float]] = {
            key(word): (dimension.replace("_", " "), float(size))
            for dimension, size, *names in rows_of("en/units")
            for word in names
        }
        """For the key of a unit, what it measures and how many of the base unit it is."""
        self.scales = {key(word): float(size) for word, size in pairs_of(words["scales"]).items()}
        """Words that multiply the number before them."""
        past = [form for _, *forms in rows_of("en/irregular_verbs") for form in forms]
        self.past = frozenset(past).union(words["unchanged_past"].split())
        """Past forms of irregular verbs, as they are written."""
        opposites: defaultdict[str, set[str]] = defaultdict(set)
        for line in rows_of("en/antonyms"):
            left, right = _keys(line[: line.index(":")]), _keys(line[line.index(":") + 1 :])
            for one, other in ((left, right), (right, left)):
                for word in one:
                    opposites[word] |= other - {word}
        for group in map(_keys, rows_of("en/exclusive")):
            for word in group:
                opposites[word] |= group - {word}
        self.opposites = {word: frozenset(others) for word, others in opposites.items()}
        """For a key, those that say the opposite, or exclude it."""


@cache
def english() -> EnglishWords:
    """The one for all."""
    return EnglishWords()


def _keys(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(key, words))
