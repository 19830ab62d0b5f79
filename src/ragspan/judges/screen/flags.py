"""Contexts that are JSON: as statements, which are compared like sentences, and as flags, which can be contradicted.

"Outdoor seating is available" contradicts `"OutdoorSeating": false`, and also `null`, which does not support it;
"no takeout" contradicts `"RestaurantsTakeOut": true`. A sentence that may mean either is not a conflict.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ragspan.judges.screen.facts import Clause, Facts
from ragspan.text.keys import content_of, key, keys, tokens
from ragspan.turns import give_turn, with_turns

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


class Flag(NamedTuple):
    """A key whose value says yes, no, or nothing."""

    name: str  # as people write it: "outdoor seating" for `OutdoorSeating`
    holds: bool
    shown: str  # what the context says: "Outdoor Seating: false"
    said: frozenset[str]  # the keys of the statement that it becomes; of null none


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
        give_turn()
        names, item = stack.pop()
        if isinstance(item, dict):
            stack.extend(((*names, name[:_LONGEST_NAME])[-_PATH:], child) for name, child in reversed(item.items()))
        elif isinstance(item, list):
            stack.extend((names, child) for child in reversed(item))
        else:
            truth = _TRUTHS.get(item.strip().lower(), item) if isinstance(item, str) else item
            words = list[str]()
            for own in (_CAMEL.sub(" ", name).split() for name in names):
                words += [*own, *(one + other for one, other in pairwise(own))]  # as people may join them: "Wi Fi WiFi"
            said = [*words, ":", truth] if isinstance(truth, str) else words if truth else ["no", *words]
            statement = "" if truth is None else " ".join(said)
            room -= len(statement)
            statements += [statement] if statement else []
            if names and not isinstance(truth, str):
                name, held = _CAMEL.sub(" ", names[-1]), content_of(keys(statement))
                shown = f"{name}: {'null' if truth is None else str(truth).lower()}"
                flags.append(Flag(" ".join(tokens(name)).lower(), truth is True, shown, held))
    return statements, flags


def clear_flags(flags: Sequence[Flag], others: Iterable[frozenset[str]]) -> list[tuple[frozenset[str], Flag]]:
    """The flags that say one thing, each with the keys of its name: a clause that has all of them speaks of it.

    A name with different values (a list of businesses) is left out, and one of which the contexts speak elsewhere as well, in
    sentences with the keys `others`: a response may follow the other place.
    """
    flags = flags[:MAX_FLAGS]
    counts = Counter(word for name in {flag.name for flag in flags} for word in {*name.split()})
    named: dict[str, set[Flag]] = {}
    for flag in flags:
        name = " ".join(word for word in flag.name.split() if counts[word] < _COMMON)
        named.setdefault(name, set()).add(flag._replace(name=name, said=frozenset()))
    statements = {flag.said for flag in flags}
    spoken = [said for said in with_turns(others) if said not in statements]
    clear = [(frozenset(keys(name)), same.pop()) for name, same in named.items() if name and len(same) == 1]
    return [(words, flag) for words, flag in with_turns(clear) if not any(words <= said for said in spoken)]


def find_conflict(facts: Facts, flags: Sequence[tuple[frozenset[str], Flag]]) -> Flag | None:
    """The first flag of which the sentence says the opposite."""
    clauses: list[tuple[Clause, frozenset[str], dict[str, int]]] = []
    for clause in facts.clauses:
        written = [word.lower() for word in facts.words[clause.start : clause.end]]
        forms = {form: at + 1 for at, word in enumerate(written) for form in (word, "".join(written[at : at + 2]))}
        clauses.append((clause, frozenset(facts.keys[clause.start : clause.end]), forms))
    for words, flag in with_turns(flags):
        joined = flag.name.replace(" ", "")
        for clause, said, forms in clauses:
            if words and words <= said:
                end = max(facts.keys.index(word, clause.start) for word in words) + 1 - clause.start
            else:  # "take out" as "takeout", and the other way round
                end = forms.get(joined, 0)
            if end and _says(facts, clause, end) is (not flag.holds):
                return flag
    return None


def _says(facts: Facts, clause: Clause, end: int) -> bool | None:
    """True when the clause asserts what its words up to `end` name, False when it denies it, None when it does neither clearly."""
    negations = [at - clause.start for at in clause.negations]
    if any(at < end for at in negations):
        return False
    if not _OPEN.isdisjoint(facts.keys):
        return None
    said = facts.keys[clause.start : clause.end]
    after = next((at for at in negations if said[at - 1] in _LINKING), None)  # "reservations are not accepted"
    if after is None:
        return True
    return False if after - 1 - end <= _NEAR and not {"and", "or"}.intersection(said[end:after]) else None
