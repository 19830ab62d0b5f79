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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_MAX_NORMALISED = 1_000_000
"""Characters up to which white space is evened out; beyond, texts are looked for as they stand."""
_MAX_WORDS = 100_000
"""Words of a prompt, and of all excerpts together, that are compared."""
_SHORT = 20
"""Texts below this length must stand between word boundaries."""
_MAX_PLACES = 1000
"""Occurrences of a text that are looked at."""
_HEAD = 64
_MIN_HEAD = 24
"""Characters of a text's beginning that make an excerpt."""
_SHINGLE = 5
_MIN_WORDS = 8
"""Words in runs of at least `_SHINGLE` that make an excerpt."""
_NEARLY_ALL = 0.95

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
        self._index: dict[tuple[str, ...], list[tuple[int, int]]] | None = None

    def find(self, texts: Sequence[str]) -> list[Match | None]:
        """Where each text stands in the prompt; equal texts share a place."""
        found: dict[str, Match | None] = {}
        distinct = sorted({text for text in texts if text.strip()}, key=len, reverse=True)
        for text in distinct:
            found[text] = self._whole(text)
        rest = [text for text in distinct if found[text] is None]
        heads = sorted(((self._head_length(text), text) for text in rest), reverse=True)
        for length, text in heads:
            found[text] = self._head(text, length)
        for text in rest:
            found[text] = found[text] or self._excerpt(text)
        return [found.get(text) for text in texts]

    def holds(self, text: str) -> bool:
        """Whether the prompt holds a text of at least two words, whole or for the most part, outside of what is taken."""
        words = _word.findall(text[:_MAX_NORMALISED])
        if len(words) < 2:  # noqa: PLR2004
            return False
        if self._place(self._even(text), whole_words=True) is not None:
            return True
        covered, _ = self._covered(text)
        return covered >= max(_MIN_WORDS, 0.6 * len(words))

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
        evened = self._even(text[: _MAX_NORMALISED // 10])
        low, high = 0, len(evened)
        while low < high:
            middle = (low + high + 1) // 2
            if evened[:middle] in self._text:
                low = middle
            else:
                high = middle - 1
        return low

    def _head(self, text: str, length: int) -> Match | None:
        if length < _MIN_HEAD:
            return None
        head = self._even(text[: _MAX_NORMALISED // 10])[:length]
        start = self._place(head, whole_words=False)
        if start is None:
            return None
        self._taken.append((start, start + length))
        return Match(start=start, whole=False)

    def _excerpt(self, text: str) -> Match | None:
        covered, spans = self._covered(text)
        if covered < _MIN_WORDS:
            return None
        self._taken += spans
        total = sum(1 for _ in _word.finditer(text[:_MAX_NORMALISED]))
        return Match(start=min(start for start, _ in spans), whole=covered >= _NEARLY_ALL * total)

    def _covered(self, text: str) -> tuple[int, list[tuple[int, int]]]:
        """How many words of a text stand in runs in the free part of the prompt, and where the runs are."""
        index = self._shingles()
        words = [match.group().lower() for match, _ in zip(_word.finditer(text), range(_MAX_WORDS), strict=False)]
        covered: set[int] = set()
        spans: list[tuple[int, int]] = []
        for place in range(len(words) - _SHINGLE + 1):
            for span in index.get(tuple(words[place : place + _SHINGLE]), ()):
                if self._taker_of(*span) is None:
                    covered.update(range(place, place + _SHINGLE))
                    spans.append(span)
                    break
        return len(covered), _merged(spans)

    def _shingles(self) -> dict[tuple[str, ...], list[tuple[int, int]]]:
        """Every run of `_SHINGLE` words in the prompt with its first few places."""
        if self._index is None:
            self._index = {}
            matches = [match for match, _ in zip(_word.finditer(self._text), range(_MAX_WORDS), strict=False)]
            words = [match.group().lower() for match in matches]
            for place in range(len(words) - _SHINGLE + 1):
                places = self._index.setdefault(tuple(words[place : place + _SHINGLE]), [])
                if len(places) < 4:  # noqa: PLR2004  enough to find one that is free
                    places.append((matches[place].start(), matches[place + _SHINGLE - 1].end()))
        return self._index

    def _even(self, text: str) -> str:
        return " ".join(text.split()) if self._evened else text


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
