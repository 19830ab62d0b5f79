"""Contexts that are JSON: as statements, which are compared like sentences, and as flags, which can be contradicted.

"Outdoor seating is available" contradicts `"OutdoorSeating": false`, and also `null`, which does not support it;
"no takeout" contradicts `"RestaurantsTakeOut": true`. A sentence that may mean either is not a conflict.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ragspan.text.keys import key, tokens
from ragspan.text.vocabulary import FUNCTION_WORDS, NEGATIONS

MAX_FLAGS = 256
"""Flags that are compared for one record."""
_SHORT = 4
"""Letters of words that people join as they like."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_.-]")
_TRUTHS = {"yes": True, "true": True, "no": False, "false": False, "none": False}
# A statement repeats the last keys that lead to its leaf. These bounds keep many leaves under long keys from becoming much
# more text than the context has.
_PATH, _LONGEST_NAME, _GROWTH = 4, 80, 4
_COMMON = 3
"""A word of so many names does not help to find one of them, and is left out."""
_NEAR = 2
"""Words that may stand between a topic and the verb that denies it: "garage parking spaces are not ..."."""
_TURN = re.compile(r"\b(?:but|however|although|though|while|whereas|yet|despite)\b|;", re.IGNORECASE)
_LINKING = frozenset({"is", "are", "was", "were", "be", "been"})
_VERBS = _LINKING | frozenset(map(key, ("has", "have", "had", "offers", "provides")))
_RESTARTS = _VERBS | {"it", "they", "there", "their", "its", "which", "that"}
_OPEN = frozenset(map(key, ("whether", "if", "unknown", "unclear", "unspecified", "specified")))
"""Words of a sentence that leaves something open."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Flag:
    """A key whose value says yes, no, or nothing."""

    name: str
    """The words of the key: "Outdoor Seating" for `OutdoorSeating`."""
    holds: bool | None
    keys: frozenset[str]
    """Those of the statement that it becomes; of null none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Structure:
    """What a JSON context says."""

    statements: tuple[str, ...]
    """One for each leaf, in order: "path : value", "path" for true, "no path" for false; none for null."""
    flags: tuple[Flag, ...]


def read_structure(text: str) -> Structure | None:
    """The structure of a context that is a JSON object or array; None for any other text."""
    if text[:1] not in {"{", "["} and text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        # Numbers stay text: they are compared as they are written, however many digits they have.
        value = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return None
    statements: list[str] = []
    flags: list[Flag] = []
    room = _GROWTH * len(text)
    for names, leaf in _leaves(value):
        truth = _TRUTHS.get(leaf.strip().lower(), leaf) if isinstance(leaf, str) else leaf
        path = " ".join(map(_spellings, names))
        statement = (
            f"{path} : {truth}" if isinstance(truth, str) else path if truth else f"no {path}" if truth is False else ""
        )
        room -= len(statement)
        if room < 0:
            break
        statements += [statement] if statement else []
        if names and not isinstance(truth, str):
            said = frozenset(map(key, tokens(statement)))
            flags.append(Flag(name=_CAMEL.sub(" ", names[-1]), holds=truth, keys=said))
    return Structure(statements=tuple(statements), flags=tuple(flags))


def _leaves(value: Any) -> Iterator[tuple[tuple[str, ...], str | bool | None]]:
    """All leaves in the order of the text; with a stack, because a text may nest to any depth."""
    stack: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while stack:
        names, item = stack.pop()
        if isinstance(item, dict):
            stack.extend(((*names, name[:_LONGEST_NAME])[-_PATH:], child) for name, child in reversed(item.items()))
        elif isinstance(item, list):
            stack.extend((names, child) for child in reversed(item))
        else:
            yield names, item


def _spellings(name: str) -> str:
    """A key's words, and two short ones also as one, as people join them: "Wi Fi WiFi"; but not "good for"."""
    words = _CAMEL.sub(" ", name).split()
    joined = (
        one + other
        for one, other in pairwise(words)
        if max(len(one), len(other)) <= _SHORT and (one.lower() in FUNCTION_WORDS) == (other.lower() in FUNCTION_WORDS)
    )
    return " ".join([*words, *joined])


@dataclass(frozen=True, kw_only=True, slots=True)
class Topic:
    """What a flag is about, and whether it holds."""

    name: str
    """As people write it: "outdoor seating"."""
    words: frozenset[str]
    """The keys of its words; a clause that has all of them speaks of the topic."""
    holds: bool
    statement: str
    """What the context says: "Outdoor Seating: false"."""


def read_topics(flags: Sequence[Flag], others: Sequence[frozenset[str]]) -> list[Topic]:
    """The topics of all flags that say one thing.

    A name with different values (a list of businesses) is left out, and one of which the contexts speak elsewhere as well, in
    sentences with the keys `others`: a response may follow the other place.
    """
    flags = flags[:MAX_FLAGS]
    counts = Counter(word for name in {flag.name for flag in flags} for word in set(_words(name)))
    named: dict[str, set[Topic]] = {}
    for flag in flags:
        words = [word for word in _words(flag.name) if counts[word] < _COMMON]
        said = "null" if flag.holds is None else str(flag.holds).lower()
        keys, name = frozenset(map(key, words)), " ".join(words)
        topic = Topic(name=name, words=keys, holds=flag.holds is True, statement=f"{flag.name}: {said}")
        if words:
            named.setdefault(name, set()).add(topic)
    statements = {flag.keys for flag in flags}
    spoken = [said for said in others if said not in statements]
    clear = [topics.pop() for topics in named.values() if len(topics) == 1]
    return [topic for topic in clear if not any(topic.words <= said for said in spoken)]


def _words(name: str) -> list[str]:
    return [token.lower() for token in tokens(name)]


def find_conflicts(sentence: str, topics: Sequence[Topic]) -> list[Topic]:
    """The topics of which the sentence says the opposite."""
    clauses = [_Clause(words) for words in _clauses(sentence)] if topics else []
    return [topic for topic in topics if any(clause.says(topic) is (not topic.holds) for clause in clauses)]


def _clauses(sentence: str) -> Iterator[list[str]]:
    """The words of each clause. Clauses begin at turns ("but", "while"), and at commas before a part with a verb."""
    for part in _TURN.split(sentence):
        clause: list[str] = []
        for segment in part.split(","):
            words = _words(segment)
            if clause and not _VERBS.isdisjoint(map(key, words)):
                yield clause
                clause = []
            clause += words
        yield clause


class _Clause:
    """Words with one predicate, which may say something about topics."""

    def __init__(self, words: Sequence[str]) -> None:
        self._keys = list(map(key, words))
        self._places = {word: at for at, word in reversed(list(enumerate(self._keys)))}
        self._compounds = {one + other: (at, at + 2) for at, (one, other) in enumerate(pairwise(words))}
        self._compounds.update({word: (at, at + 1) for at, word in enumerate(words)})

    def says(self, topic: Topic) -> bool | None:
        """True when the clause asserts the topic, False when it denies it, None when it does neither clearly."""
        span = self._compounds.get(topic.name.replace(" ", ""))
        if span is None and topic.words <= self._places.keys():
            places = [self._places[word] for word in topic.words]
            span = min(places), max(places) + 1
        return self._polarity(*span) if span else None

    def _polarity(self, start: int, end: int) -> bool | None:
        if self._is_denied_before(start) or not NEGATIONS.isdisjoint(self._keys[start:end]):
            return False
        if not _OPEN.isdisjoint(self._keys):
            return None
        after = self._keys[end:]
        for at, (verb, following) in enumerate(pairwise(after)):
            if verb in _LINKING and following in NEGATIONS:  # "reservations are not accepted"
                return False if at <= _NEAR and not {"and", "or"}.intersection(after[:at]) else None
        return True

    def _is_denied_before(self, start: int) -> bool:
        """True after a negation, up to the next verb or subject that is not itself negated."""
        denied = False
        for before, word in zip(["", *self._keys], self._keys[:start], strict=False):
            denied = word in NEGATIONS or (denied and not (word in _RESTARTS and before not in NEGATIONS))
        return denied
