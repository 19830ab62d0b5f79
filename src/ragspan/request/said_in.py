"""What people and models say inside of texts: conversations that a program writes into a prompt line by line."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from ragspan.matching import Span
from ragspan.request.contents import ROLES

_ROLE = r"human|user|ai|assistant|system|developer|tool|function"
_line = re.compile(rf"[ \t]*(?:[-*>] )?\**(?P<role>{_ROLE})(?: ?\([^)\n]{{0,60}}\))?\**[ \t]*:", re.IGNORECASE)
"""At the beginning of a line."""
_tagged = re.compile(
    rf"<message (?:type|role)=\"(?P<role>{_ROLE})\"[^>]{{0,200}}>(?P<said>.*?)</message>", re.IGNORECASE | re.DOTALL
)
_memory = re.compile(r"<(memory|memories)>\s*(?P<kept>.*?)\s*</\1>", re.DOTALL)
_tag = re.compile(r"^\s*</?\w{1,60}>\s*$", re.MULTILINE)
_brace = re.compile("[{}]")
_fields = re.compile(r"[\"']properties[\"']\s*:")
_type = re.compile(r"[\"']type[\"']\s*:\s*[\"'](?:object|string|integer|number|boolean|array|null)[\"']")
_next_section = re.compile(r"\n[ \t]*\n(?=[#<\[]|[A-Z][\w ]{0,40}:)")
_MAX_LOOKED_AT = 200_000


def spoken_in(text: str) -> Iterator[tuple[str, Span]]:
    """The roles in a conversation that is written in a text, and where each of them speaks, up to the next one."""
    text = text[:_MAX_LOOKED_AT]
    tagged = list(_tagged.finditer(text)) if "<message" in text else []
    for match in tagged:
        yield ROLES[match["role"].lower()], match.span("said")
    lines = [] if tagged else _lines_of_people(text)
    for match, after in zip_longest(lines, lines[1:]):
        end = len(text) if after is None else after.start()
        section = _next_section.search(text, match.end(), end)
        yield ROLES[match["role"].lower()], (match.start(), end if section is None else section.start())


def _lines_of_people(text: str) -> list[re.Match[str]]:
    found, start = [_line.match(text)], text.find("\n") + 1
    while start:
        found.append(_line.match(text, start))
        start = text.find("\n", start) + 1
    return [match for match in found if match is not None]


def memories_in(text: str) -> Iterator[Span]:
    """Where a text has what a program remembers, between tags of that name, without the tags inside."""
    for match in _memory.finditer(text[:_MAX_LOOKED_AT]):
        start, end = match.span("kept")
        yield from subtract_spans([(start, end)], (tag.span() for tag in _tag.finditer(text, start, end)))


def schemas_in(text: str) -> Iterator[Span]:
    """Where a text has JSON schemas, which say what form an answer is to have; their braces may be doubled."""
    text = text[:_MAX_LOOKED_AT]
    if "properties" not in text or "type" not in text:
        return
    fields, types = ([match.start() for match in sign.finditer(text)] for sign in (_fields, _type))
    opened: list[int] = []
    for match in _brace.finditer(text) if fields and types else ():
        if match[0] == "{":
            opened.append(match.start())
        elif opened:
            span = opened.pop(), match.end()
            if all(bisect_left(places, span[0]) < bisect_left(places, span[1]) for places in (fields, types)):
                yield span


def subtract_spans(spans: Sequence[Span], taken: Iterable[Span]) -> list[Span]:
    """What is left of ranges of characters, in order."""
    left = list(spans)
    for start, end in taken:
        pieces = [piece for low, high in left for piece in ((low, min(high, start)), (max(low, end), high))]
        left = [(low, high) for low, high in pieces if low < high]
    return left
