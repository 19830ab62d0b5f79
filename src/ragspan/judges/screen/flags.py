"""Sentences that say the opposite of a flag in a JSON context.

"Outdoor seating is available" contradicts `"OutdoorSeating": false`, and also `null`, which does not support it;
"no takeout" contradicts `"RestaurantsTakeOut": true`. A sentence that may mean either is not a conflict.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from ragspan.judges.screen.contexts import Context
from ragspan.judges.screen.structured import Flag
from ragspan.text.keys import key, keys, tokens
from ragspan.text.vocabulary import NEGATIONS

MAX_FLAGS = 256
"""Flags that are compared for one record."""

_COMMON = 3
"""A word of so many names does not help to find one of them, and is left out."""

_TURN = re.compile(r"\b(?:but|however|although|though|while|whereas|yet|despite)\b|;", re.IGNORECASE)
_LINKING = frozenset({"is", "are", "was", "were", "be", "been"})
_JOINING = frozenset({"and", "or"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Topic:
    """What a flag is about, and whether it holds."""

    name: str
    """As people write it: "outdoor seating"."""
    words: frozenset[str]
    """The keys of its words; a clause that has all of them speaks of the topic."""
    compound: str
    """Its words as one: "wifi", "takeout"."""
    holds: bool
    statement: str
    """What the context says: "Outdoor Seating: false"."""


class Topics:
    """Topics by their words: a sentence is compared only with topics of which it has a word."""

    def __init__(self, topics: Iterable[Topic]) -> None:
        self._topics = tuple(topics)
        self._by_word: dict[str, list[Topic]] = {}
        for topic in self._topics:
            for word in (min(topic.words), topic.compound):  # a clause that speaks of it has one of both
                self._by_word.setdefault(word, []).append(topic)

    def __len__(self) -> int:
        return len(self._topics)

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._topics)

    def among(self, words: Iterable[str]) -> set[Topic]:
        """Those that a text with these keys and compounds may speak of."""
        return {topic for word in words for topic in self._by_word.get(word, ())}


def read_topics(contexts: Sequence[Context]) -> Topics:
    """The topics of all flags that say one thing.

    A name with different values (a list of businesses) is left out, and one of which the contexts speak elsewhere as well:
    a response may follow the other place.
    """
    flags = [flag for context in contexts for flag in context.flags][:MAX_FLAGS]
    if not flags:
        return Topics(())
    counts = Counter(word for name in {flag.name for flag in flags} for word in set(_words(name)))
    named: dict[str, set[Topic]] = {}
    for flag in flags:
        topic = _topic(flag, [word for word in _words(flag.name) if counts[word] < _COMMON])
        if topic.words:
            named.setdefault(topic.name, set()).add(topic)
    statements = {tuple(keys(flag.statement)) for flag in flags}
    others = [
        frozenset(said)
        for context in contexts
        for said in map(context.keys_of, range(len(context)))
        if tuple(said) not in statements
    ]
    clear = Topics(topics.pop() for topics in named.values() if len(topics) == 1)
    spoken_of = {topic for said in others for topic in clear.among(said) if topic.words <= said}
    return Topics(topic for topic in clear if topic not in spoken_of)


def _words(name: str) -> list[str]:
    return [token.lower() for token in tokens(name)]


def _topic(flag: Flag, words: Sequence[str]) -> Topic:
    return Topic(
        name=" ".join(words),
        words=frozenset(map(key, words)),
        compound="".join(words),
        holds=flag.holds is True,
        statement=f"{flag.name}: {'null' if flag.holds is None else str(flag.holds).lower()}",
    )


def find_conflicts(sentence: str, topics: Topics) -> tuple[Topic, ...]:
    """The topics of which the sentence says the opposite."""
    if not topics:
        return ()
    denied = {
        topic
        for clause in map(Clause, _clauses(sentence))
        for topic in topics.among([*clause.keys, *clause.compounds])
        if clause.says(topic) is (not topic.holds)
    }
    return tuple(topic for topic in topics if topic in denied)


def _clauses(sentence: str) -> Iterator[list[str]]:
    """The words of each clause. Clauses begin at turns ("but", "while"), and at commas before a part with a verb."""
    for part in _TURN.split(sentence):
        clause: list[str] = []
        for segment in part.split(","):
            words = _words(segment)
            if clause and not _verbs().isdisjoint(map(key, words)):
                yield clause
                clause = []
            clause += words
        yield clause


class Clause:
    """Words with one predicate, which may say something about topics."""

    def __init__(self, words: Sequence[str]) -> None:
        self.keys = list(map(key, words))
        self._places = {word: at for at, word in reversed(list(enumerate(self.keys)))}
        self.compounds = {first + second: (at, at + 2) for at, (first, second) in enumerate(pairwise(words))}
        self.compounds.update({word: (at, at + 1) for at, word in enumerate(words)})

    def says(self, topic: Topic) -> bool | None:
        """True when the clause asserts the topic, False when it denies it, None when it does neither clearly."""
        span = self.compounds.get(topic.compound) or self._span(topic.words)
        return self._polarity(*span) if span else None

    def _span(self, words: frozenset[str]) -> tuple[int, int] | None:
        if not words <= self._places.keys():
            return None
        places = [self._places[word] for word in words]
        return min(places), max(places) + 1

    def _polarity(self, start: int, end: int) -> bool | None:
        if self._denied_before(start) or not NEGATIONS.isdisjoint(self.keys[start:end]):
            return False
        if not _open_words().isdisjoint(self.keys):
            return None
        after = self.keys[end:]
        for at, (verb, following) in enumerate(pairwise(after)):
            if verb in _LINKING and following in NEGATIONS:  # "reservations are not accepted"
                return False if _JOINING.isdisjoint(after[:at]) and at <= _NEAR else None
        return True

    def _denied_before(self, start: int) -> bool:
        """True after a negation, up to the next verb or subject that is not itself negated."""
        denied = False
        for before, word in zip(["", *self.keys], self.keys[:start], strict=False):
            if word in NEGATIONS:
                denied = True
            elif word in _restarts() and before not in NEGATIONS:
                denied = False
        return denied


_NEAR = 2
"""Words that may stand between a topic and the verb that denies it: "garage parking spaces are not ..."."""


@cache
def _verbs() -> frozenset[str]:
    return _LINKING | {key(word) for word in ("has", "have", "had", "offers", "provides")}


@cache
def _restarts() -> frozenset[str]:
    return _verbs() | {"it", "they", "there", "their", "its", "which", "that"}


@cache
def _open_words() -> frozenset[str]:
    return frozenset(key(word) for word in ("whether", "if", "unknown", "unclear", "unspecified", "specified"))
