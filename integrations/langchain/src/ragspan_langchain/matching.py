"""Which texts reached a prompt, and where: in the worker, within bounds.

Programs rarely put a passage into a prompt as it is. They number and indent it, dump it as JSON, print it, escape it for
XML, cut it off, or take sentences out of it. So a text is looked for whole first, in the spellings that formatters
give it; then as an excerpt: by its beginning, and by runs of words. A place in the prompt counts for one text only, the
one that covers most of it: a short passage inside a longer one, or a heading that several share, proves nothing.
"""

from __future__ import annotations

import html
import json
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

_MAX_NORMALISED = 1_000_000
"""Characters up to which white space is evened out; beyond, texts are looked for as they stand."""
_MAX_WORDS = 50_000
"""Words of a prompt, and of all texts that are no whole part of it together, that are compared."""
_SHORT = 20
"""Texts below this length must stand between word boundaries."""
_MAX_PLACES = 1000
"""Occurrences of a text that are looked at."""
_HEAD = 64
_MIN_HEAD = 24
"""Characters of a text's beginning that make an excerpt."""
_MAX_HEAD = 10_000
_SHINGLE = 5
_MIN_WORDS = 8
"""Words in runs of at least `_SHINGLE` that make an excerpt."""
_NEARLY_ALL = 0.9

_word = re.compile(r"\w+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """A text found in a prompt."""

    start: int
    """Where it begins; to be compared with other matches in the same prompt only."""
    whole: bool
    """Nothing of the text is missing."""


class PromptText:
    """A prompt that texts are looked for in; what has been found once is taken."""

    def __init__(self, text: str) -> None:
        self._evened = len(text) <= _MAX_NORMALISED
        self._text = self._even(text)
        self._taken: list[tuple[int, int]] = []
        self._shingles: _Shingles | None = None

    def find(self, texts: Sequence[str]) -> list[Match | None]:
        """Where each text stands in the prompt; equal texts share a place."""
        found: dict[str, Match | None] = {}
        distinct = sorted({text for text in texts if text.strip()}, key=len, reverse=True)
        for text in distinct:
            found[text] = self._whole(text)
        rest = [text for text in distinct if found[text] is None]
        for length, text in sorted(((self._head_length(text), text) for text in rest), reverse=True):
            found[text] = self._excerpt(text, length, _MAX_WORDS // len(rest))
        return [found.get(text) for text in texts]

    def holds(self, text: str) -> bool:
        """Whether the prompt holds a text of at least two words, whole or for the most part, outside of what is taken."""
        words = sum(1 for _ in islice(_word.finditer(text), _MAX_WORDS))
        if words < 2:  # noqa: PLR2004  one word stands anywhere
            return False
        if self._place(self._even(text), whole_words=True) is not None:
            return True
        covered, _ = self._covered(text, _MAX_WORDS)
        return covered >= max(_MIN_WORDS, 0.6 * words)

    # Whole texts

    def _whole(self, text: str) -> Match | None:
        for spelling in _spellings(text):
            evened = self._even(spelling)
            start = self._place(evened, whole_words=len(evened) < _SHORT)
            if start is not None:
                self._taken.append((start, start + len(evened)))
                return Match(start=start, whole=True)
        return None

    def _place(self, needle: str, *, whole_words: bool) -> int | None:
        """The first place of a text that is not taken."""
        start = _find(self._text, needle, 0)
        for _ in range(_MAX_PLACES):
            if start < 0:
                break
            end = start + len(needle)
            taken = self._taker_of(start, end)
            if taken is None and not (whole_words and self._cuts_words(start, end)):
                return start
            start = _find(
                self._text, needle, start + 1 if taken is None else max(start + 1, taken[1] - len(needle) + 1)
            )
        return None

    def _taker_of(self, start: int, end: int) -> tuple[int, int] | None:
        return next((span for span in self._taken if span[0] <= start and end <= span[1]), None)

    def _cuts_words(self, start: int, end: int) -> bool:
        text = self._text
        before = start > 0 and text[start - 1].isalnum() and text[start].isalnum()
        after = end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
        return before or after

    # Excerpts

    def _head_length(self, text: str) -> int:
        """How much of a text's beginning stands somewhere in the prompt."""
        evened = self._even(text[:_MAX_HEAD])
        low, high = 0, len(evened)
        while low < high:
            middle = (low + high + 1) // 2
            if evened[:middle] in self._text:
                low = middle
            else:
                high = middle - 1
        return low

    def _excerpt(self, text: str, head_length: int, most: int) -> Match | None:
        """A text of which the prompt holds enough: its beginning, or runs of words."""
        spans: list[tuple[int, int]] = []
        head = self._even(text[:_MAX_HEAD])[:head_length]
        start = self._place(head, whole_words=False) if head_length >= _MIN_HEAD else None
        covered, runs = self._covered(text, most)
        if start is not None:
            spans.append((start, start + head_length))
        if covered >= _MIN_WORDS:
            spans += runs
        if not spans:
            return None
        spans = _merged(spans)
        self._taken += spans
        shown = sum(end - start for start, end in spans)
        total = sum(1 for _ in islice(_word.finditer(text), most))
        whole = covered >= _NEARLY_ALL * total and shown >= _NEARLY_ALL * len(self._even(text))
        return Match(start=spans[0][0], whole=whole)

    def _covered(self, text: str, most: int) -> tuple[int, list[tuple[int, int]]]:
        """How many words of a text stand in runs in the free part of the prompt, and where the runs are."""
        if self._shingles is None:
            self._shingles = _Shingles(self._text)
        covered: set[int] = set()
        spans: list[tuple[int, int]] = []
        for place, key in enumerate(_runs(_lower_words(text, most))):
            span = next((span for span in self._shingles.places(key) if self._taker_of(*span) is None), None)
            if span is not None:
                covered.update(range(place, place + _SHINGLE))
                spans.append(span)
        return len(covered), _merged(spans)

    def _even(self, text: str) -> str:
        return " ".join(text.split()) if self._evened else text


class _Shingles:
    """Every run of `_SHINGLE` words in a text, with its first few places.

    Runs are kept as numbers, not as tuples: a hundred thousand small containers keep the garbage collector busy, and
    with it every thread of the process.
    """

    def __init__(self, text: str) -> None:
        self._starts = array("Q")
        self._ends = array("Q")
        self._first: dict[int, int] = {}
        self._more: dict[int, list[int]] = {}
        for match in islice(_word.finditer(text), _MAX_WORDS):
            self._starts.append(match.start())
            self._ends.append(match.end())
        for place, key in enumerate(_runs(_lower_words(text, _MAX_WORDS))):
            if self._first.setdefault(key, place) != place:
                more = self._more.setdefault(key, [])
                if len(more) < 3:  # noqa: PLR2004  enough to find one that is free
                    more.append(place)

    def places(self, key: int) -> Iterator[tuple[int, int]]:
        """Where a run begins and ends, for each of its places."""
        first = self._first.get(key)
        if first is not None:
            for place in (first, *self._more.get(key, ())):
                yield self._starts[place], self._ends[place + _SHINGLE - 1]


def _lower_words(text: str, most: int) -> list[str]:
    return [match.group().lower() for match in islice(_word.finditer(text), most)]


def _runs(words: Sequence[str]) -> Iterator[int]:
    """A number for every run of `_SHINGLE` words, the same for the same words in this process."""
    return (hash(tuple(words[place : place + _SHINGLE])) for place in range(len(words) - _SHINGLE + 1))


def _spellings(text: str) -> Iterator[str]:
    """A text as formatters write it: as it is, as JSON, as Python prints it, as XML."""
    seen = set()
    for write in _WRITERS:
        written = write(text)
        if written not in seen:
            seen.add(written)
            yield written


_WRITERS: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: json.dumps(text)[1:-1],
    lambda text: repr(text)[1:-1],
    lambda text: html.escape(text, quote=False),
    html.escape,
)


def _find(text: str, needle: str, start: int) -> int:
    """`text.find(needle, start)`, fast for long needles that begin alike only here and there."""
    if len(needle) <= _HEAD:
        return text.find(needle, start)
    head = needle[:_HEAD]
    for _ in range(50):
        start = text.find(head, start)
        if start < 0 or text.startswith(needle, start):
            return start
        start += 1
    return text.find(needle, start)


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
