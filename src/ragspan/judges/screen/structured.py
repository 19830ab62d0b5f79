"""Contexts that are JSON: as statements, which are compared like sentences, and as flags, which can be contradicted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from ragspan.text.vocabulary import FUNCTION_WORDS

Leaf: TypeAlias = str | bool | None

_SHORT = 4
"""Letters of words that people join as they like."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_.-]")
_YES, _NO = frozenset({"yes", "true"}), frozenset({"no", "false", "none"})

# A statement repeats the last keys that lead to its leaf. These bounds keep many leaves under long keys from becoming much
# more text than the context has.
_PATH = 4
_LONGEST_NAME = 80
_GROWTH = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Flag:
    """A key whose value says yes, no, or nothing."""

    name: str
    """The words of the key: "Outdoor Seating" for `OutdoorSeating`."""
    holds: bool | None
    statement: str
    """The statement that it becomes; empty for null."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Structure:
    """What a JSON context says."""

    statements: tuple[str, ...]
    """One for each leaf, in order: "path : value", "path" for true, "no path" for false; none for null."""
    flags: tuple[Flag, ...]


def read_structure(text: str) -> Structure | None:
    """The structure of a context that is a JSON object or array; None for any other text."""
    if text.lstrip()[:1] not in {"{", "["}:
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
        statement, holds = _statement(names, leaf), _truth(leaf)
        room -= len(statement)
        if room < 0:
            break
        if statement:
            statements.append(statement)
        if names and not isinstance(holds, str):
            flags.append(Flag(name=_split(names[-1]), holds=holds, statement=statement))
    return Structure(statements=tuple(statements), flags=tuple(flags))


def _leaves(value: Any) -> Iterator[tuple[tuple[str, ...], Leaf]]:
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


def _truth(leaf: Leaf) -> Leaf:
    if not isinstance(leaf, str):
        return leaf
    word = leaf.strip().lower()
    return True if word in _YES else False if word in _NO else leaf


def _statement(names: tuple[str, ...], leaf: Leaf) -> str:
    truth = _truth(leaf)
    if truth is None:
        return ""
    path = " ".join(map(_spellings, names))
    if isinstance(truth, bool):
        return path if truth else f"no {path}"
    return f"{path} : {truth}"


def _split(name: str) -> str:
    return _CAMEL.sub(" ", name)


def _spellings(name: str) -> str:
    """A key's words, and two short ones also as one: "Wi Fi WiFi"."""
    words = _split(name).split()
    joined = (first + second for first, second in pairwise(words) if _is_written_as_one(first, second))
    return " ".join([*words, *joined])


def _is_written_as_one(first: str, second: str) -> bool:
    """True for two short words that people join as they like: "take out", "Wi-Fi"; but not "good for"."""
    alike = (first.lower() in FUNCTION_WORDS) == (second.lower() in FUNCTION_WORDS)
    return alike and max(len(first), len(second)) <= _SHORT
