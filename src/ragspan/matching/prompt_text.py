"""Which texts reached a prompt, and where: in the worker, within bounds.

Programs rarely put a passage into a prompt as it is. They number and indent it, dump it as JSON, escape it, cut it off, or
take sentences out of it. So a text is looked for whole first, in spite of its spelling; then as an excerpt: by its
beginning, and by runs of words that stand in the prompt in the text's own order. A place in the prompt counts for one
text only, the one that covers most of it: a short passage inside a longer one, or a heading that several share, proves
nothing.
"""

from __future__ import annotations

import heapq
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ragspan.matching.normalization import evened, word_count, words_in

_MAX_WORDS = 50_000
"""Words of a prompt that are compared."""
_MAX_EXCERPT_WORDS = 20_000
"""Words of all texts together that are no whole part of it."""
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
_MOST = 0.8
_NEARLY_ALL = 0.9


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """A text found in a prompt."""

    start: int
    """Where it begins; to be compared with other matches in the same prompt only."""
    whole: bool
    """Nothing of the text is missing."""


class PromptText:
    """A prompt that texts are looked for in.

    Args:
        text: the prompt.
        apart: a text in it that holds no passages, even if it quotes some: the user's own words.
    """

    def __init__(self, text: str, *, apart: str = "") -> None:
        self._plain = text
        self._apart = apart
        self._field: _Field | None = None

    def find(self, texts: Sequence[str], *, excerpts: bool = True) -> list[Match | None]:
        """Where each text stands in the prompt, whole or, with `excerpts`, in part; equal texts share a place."""
        distinct = sorted({text for text in texts if text.strip()}, key=len, reverse=True)
        plain = _Field(self._plain)
        found = dict(zip(distinct, plain.take_all_whole(distinct, self._apart), strict=True))
        if not all(found.values()):  # start again, more carefully
            self._field = field = _Field(evened(self._plain))
            spelled = {text: evened(text) for text in distinct}
            wholes = field.take_all_whole([spelled[text] for text in distinct], evened(self._apart))
            found = dict(zip(distinct, wholes, strict=True))
            rest = [text for text in distinct if found[text] is None] if excerpts else []
            found |= dict(zip(rest, field.take_excerpts([spelled[text] for text in rest]), strict=True))
        else:
            self._field = plain
        return [found.get(text) for text in texts]

    def holds(self, text: str) -> bool:
        """Whether the prompt holds what a model said, whole or a run of it, outside of the texts found before.

        One word stands anywhere, so it takes two.
        """
        words = word_count(text)
        if words < 2:  # noqa: PLR2004  see above
            return False
        field = self._field or _Field(evened(self._plain))
        said = evened(text)
        if field.place(said, whole_words=True) is not None:
            return True
        covered = field.covered(said, _MAX_EXCERPT_WORDS).words
        return covered >= _MIN_WORDS or covered >= max(_SHINGLE, _MOST * words)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Coverage:
    """How much of a text stands in the free part of a prompt."""

    words: int = 0
    spans: tuple[tuple[int, int], ...] = ()

    @property
    def characters(self) -> int:
        return sum(end - start for start, end in self.spans)


class _Field:
    """A prompt in one spelling, and which parts of it are taken."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._taken: list[tuple[int, int]] = []
        self._shingles: _Shingles | None = None

    def take_all_whole(self, texts: Sequence[str], apart: str) -> list[Match | None]:
        """Whole texts, which come in order of their length, the longest first.

        `apart` takes its places before anything shorter does: what stands in it is a quotation. A text that is longer
        may hold it.
        """
        matches: list[Match | None] = []
        is_placed = len(apart) < _MIN_HEAD
        for text in texts:
            if not is_placed and len(text) < len(apart):
                self._take_everywhere(apart)
                is_placed = True
            matches.append(self._take_whole(text))
        if not is_placed:
            self._take_everywhere(apart)
        return matches

    def _take_everywhere(self, text: str) -> None:
        while self._take_whole(text) is not None:
            pass

    def _take_whole(self, text: str) -> Match | None:
        start = self.place(text, whole_words=len(text) < _SHORT)
        if start is None:
            return None
        self._taken.append((start, start + len(text)))
        return Match(start=start, whole=True)

    def place(self, needle: str, *, whole_words: bool) -> int | None:
        """The first place of a text that is not taken."""
        start = _find(self._text, needle, 0)
        for _ in range(_MAX_PLACES):
            if start < 0:
                break
            end = start + len(needle)
            if not self._is_taken(start, end) and not (whole_words and self._cuts_words(start, end)):
                return start
            start = _find(self._text, needle, start + 1)
        return None

    def take_excerpts(self, texts: Sequence[str]) -> list[Match | None]:
        """Excerpts of texts, that of which most stands in the prompt first: what it takes is no other's any more."""
        matches: list[Match | None] = [None] * len(texts)
        most = _MAX_EXCERPT_WORDS // max(1, len(texts))
        coverages = [self._excerpt(text, most) for text in texts]
        waiting = [(-coverage.characters, number) for number, coverage in enumerate(coverages) if coverage.spans]
        heapq.heapify(waiting)
        while waiting:
            characters, number = heapq.heappop(waiting)
            coverage = self._excerpt(texts[number], most)
            if not coverage.spans:
                continue
            if coverage.characters < -characters and waiting:  # others have taken some of it; is it still the largest?
                heapq.heappush(waiting, (-coverage.characters, number))
                continue
            self._taken += coverage.spans
            whole = coverage.characters >= _NEARLY_ALL * len(texts[number])
            matches[number] = Match(start=coverage.spans[0][0], whole=whole)
        return matches

    def _excerpt(self, text: str, most: int) -> _Coverage:
        """The part of a text that is enough to tell that the prompt holds an excerpt of it; else nothing."""
        coverage = self.covered(text, most)
        spans = coverage.spans if coverage.words >= _MIN_WORDS else ()
        head = text[: self._head_length(text)].rstrip()
        start = self.place(head, whole_words=False) if len(head) >= _MIN_HEAD else None
        if start is not None:
            spans = (*spans, (start, start + len(head)))
        return _Coverage(words=coverage.words, spans=tuple(_merged(spans)))

    def _head_length(self, text: str) -> int:
        """How much of a text's beginning stands somewhere in the prompt."""
        low, high = 0, min(len(text), _MAX_HEAD)
        while low < high:
            middle = (low + high + 1) // 2
            if text[:middle] in self._text:
                low = middle
            else:
                high = middle - 1
        return low

    def covered(self, text: str, most: int) -> _Coverage:
        """The runs of words that a text shares with the free part of the prompt.

        Runs at the same distance from their places in the text are one quotation; the longest quotations come first,
        and a word of the text counts once.
        """
        if self._shingles is None:
            self._shingles = _Shingles(self._text)
        quotations: dict[int, list[int]] = defaultdict(list)
        for place, key in enumerate(_runs(_lower_words(text, most))):
            for there in self._shingles.places(key):
                if not self._is_taken(*self._shingles.span(there)):
                    quotations[there - place].append(place)
        words: set[int] = set()
        spans: list[tuple[int, int]] = []
        for distance, places in sorted(quotations.items(), key=lambda item: -len(item[1])):
            for place in places:
                run = range(place, place + _SHINGLE)
                if not words.issuperset(run):
                    words.update(run)
                    spans.append(self._shingles.span(place + distance))
        return _Coverage(words=len(words), spans=tuple(_merged(spans)))

    def _is_taken(self, start: int, end: int) -> bool:
        """Whether most of a place is taken; a space or a bracket more does not make it a place of its own."""
        allowed = (1 - _NEARLY_ALL) * (end - start)
        return any(max(0, a - start) + max(0, end - b) <= allowed for a, b in self._taken if a < end and start < b)

    def _cuts_words(self, start: int, end: int) -> bool:
        text = self._text
        before = start > 0 and text[start - 1].isalnum() and text[start].isalnum()
        after = end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
        return before or after


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
        for match in islice(words_in(text), _MAX_WORDS):
            self._starts.append(match.start())
            self._ends.append(match.end())
        for place, key in enumerate(_runs(_lower_words(text, _MAX_WORDS))):
            if self._first.setdefault(key, place) != place:
                more = self._more.setdefault(key, [])
                if len(more) < 9:  # noqa: PLR2004  enough to find one that is free
                    more.append(place)

    def places(self, key: int) -> Iterator[int]:
        """The numbers of the words with which a run begins."""
        first = self._first.get(key)
        if first is not None:
            yield first
            yield from self._more.get(key, ())

    def span(self, place: int) -> tuple[int, int]:
        """The characters of the run that begins with this word."""
        return self._starts[place], self._ends[place + _SHINGLE - 1]


def _lower_words(text: str, most: int) -> list[str]:
    return [match.group().lower() for match in islice(words_in(text), most)]


def _runs(words: Sequence[str]) -> Iterator[int]:
    """A number for every run of `_SHINGLE` words, the same for the same words in this process."""
    return (hash(tuple(words[place : place + _SHINGLE])) for place in range(len(words) - _SHINGLE + 1))


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
    """Spans in order, those that touch or stand a few characters apart as one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1] + 2:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
