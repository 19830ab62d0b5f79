"""Contexts that are JSON: as statements, which are compared like sentences, and as flags, which can be contradicted.

"Outdoor seating is available" contradicts `"OutdoorSeating": false`, and also `null`, which does not support it;
"no takeout" contradicts `"RestaurantsTakeOut": true`. A sentence that may mean either is not a conflict.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ragspan.judges.screen.facts import Clause, Facts, compared
from ragspan.text.keys import content_of, key, keys, tokens

MAX_FLAGS = 256  # flags that are compared for one record
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_.-]")
_TRUTHS = {"yes": True, "true": True, "no": False, "false": False, "none": False}
# A statement repeats the last keys that lead to its leaf. These bounds keep many leaves under long keys from becoming much
# more text than the context has.
_PATH, _LONGEST_NAME, _GROWTH = 4, 80, 4
_COMMON = 3  # a word of so many names does not help to find one of them, and is left out
_NEAR = 2  # words that may stand between a topic and the verb that denies it: "garage parking spaces are not ..."
_LINKING = frozenset({"is", "are", "was", "were", "be", "been"})
_OPEN = frozenset(map(key, ("whether", "if", "unknown", "unclear", "unspecified", "specified")))
"""Words of a sentence that leaves something open."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Flag:
    """A key whose value says yes, no, or nothing."""

    name: str  # the words of the key: "Outdoor Seating" for `OutdoorSeating`
    holds: bool | None
    keys: frozenset[str]  # those of the statement that it becomes; of null none


def read_structure(text: str) -> tuple[list[str], list[Flag]] | None:
    """What a context says that is a JSON object or array, and its flags; None for any other text.

    There is a statement for each leaf, in order: "path : value", "path" for true, "no path" for false; none for null.
    """
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
    stack: list[tuple[tuple[str, ...], Any]] = [((), value)]  # a text may nest to any depth
    while stack and room > 0:
        names, item = stack.pop()
        if isinstance(item, dict):
            stack.extend(((*names, name[:_LONGEST_NAME])[-_PATH:], child) for name, child in reversed(item.items()))
        elif isinstance(item, list):
            stack.extend((names, child) for child in reversed(item))
        else:
            truth = _TRUTHS.get(item.strip().lower(), item) if isinstance(item, str) else item
            words = [word for name in names for word in _spellings(name)]
            said = [*words, ":", truth] if isinstance(truth, str) else words if truth else ["no", *words]
            statement = "" if truth is None else " ".join(said)
            room -= len(statement)
            statements += [statement] if statement else []
            if names and not isinstance(truth, str):
                name = _CAMEL.sub(" ", names[-1])
                flags.append(Flag(name=name, holds=truth, keys=content_of(keys(statement))))
    return statements, flags


def _spellings(name: str) -> list[str]:
    """A key's words, and two neighbours also as one, as people may join them: "Wi Fi WiFi"."""
    words = _CAMEL.sub(" ", name).split()
    return [*words, *(one + other for one, other in pairwise(words))]


@dataclass(frozen=True, kw_only=True, slots=True)
class Topic:
    """What a flag is about, and whether it holds."""

    name: str  # as people write it: "outdoor seating"
    words: frozenset[str]  # the keys of its words; a clause that has all of them speaks of the topic
    holds: bool
    statement: str  # what the context says: "Outdoor Seating: false"


def read_topics(flags: Sequence[Flag], others: Iterable[frozenset[str]]) -> list[Topic]:
    """The topics of all flags that say one thing.

    A name with different values (a list of businesses) is left out, and one of which the contexts speak elsewhere as well, in
    sentences with the keys `others`: a response may follow the other place.
    """
    names = {flag: [token.lower() for token in tokens(flag.name)] for flag in flags[:MAX_FLAGS]}
    counts = Counter(word for name in {*map(tuple, names.values())} for word in set(name))
    named: dict[str, set[Topic]] = {}
    for flag, name in names.items():
        words = [word for word in name if counts[word] < _COMMON]
        statement = f"{flag.name}: {'null' if flag.holds is None else str(flag.holds).lower()}"
        topic_keys = frozenset(compared(key(word)) for word in words)
        topic = Topic(name=" ".join(words), words=topic_keys, holds=flag.holds is True, statement=statement)
        named.setdefault(topic.name, set()).update({topic} if words else ())
    statements = {flag.keys for flag in flags}
    spoken = [said for said in others if said not in statements]
    clear = [topics.pop() for topics in named.values() if len(topics) == 1]
    return [topic for topic in clear if not any(topic.words <= said for said in spoken)]


def find_conflict(facts: Facts, topics: Sequence[Topic]) -> Topic | None:
    """The first topic of which the sentence says the opposite."""
    found = (topic for topic in topics for clause in facts.clauses if _says(facts, clause, topic) is (not topic.holds))
    return next(found, None)


def _says(facts: Facts, clause: Clause, topic: Topic) -> bool | None:
    """True when the clause asserts the topic, False when it denies it, None when it does neither clearly."""
    said = facts.keys[clause.start : clause.end]
    places = [said.index(word) for word in topic.words if word in said]
    if len(places) < len(topic.words):  # "take out" as "takeout", and the other way round
        words, name = [word.lower() for word in facts.words[clause.start : clause.end]], topic.name.replace(" ", "")
        places = [at for at in range(len(words)) if name in {words[at], "".join(words[at : at + 2])}]
    if not places:
        return None
    end = max(places) + 1
    negations = [at - clause.start for at in clause.negations]
    if any(at < end for at in negations):
        return False
    if not _OPEN.isdisjoint(facts.keys):
        return None
    after = next((at for at in negations if said[at - 1] in _LINKING), None)  # "reservations are not accepted"
    if after is None:
        return True
    return False if after - 1 - end <= _NEAR and not {"and", "or"}.intersection(said[end:after]) else None
