"""The words of prompts in a row, with an index of their runs, in which the words of other texts are looked for.

A run of `_SHINGLE` words leads to the places where a text may be; there the words are compared. So the cost of a text
depends on its own length and not on that of the prompts. What repeats itself may lead to many places: `work` bounds them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import NamedTuple

_SHINGLE = 5
_MANY_WORDS = 120_000
_WIDE_STEP = 4
"""Where there are many words, the index has one of this many places in a row."""
_MAX_PLACES = 1000
"""Places that are kept of one run of words."""
_MAX_FREE = 20_000
_MAX_TRIED = 20
"""Places of one run that an excerpt is looked for at."""
_AT_ONCE = 10_000
_WORK = 350_000
"""What comparing words may cost; about a tenth of a second."""
_VISIT = 3
"""What it costs to look at a place."""
_BETWEEN = "\n"
"""Separates the prompts' parts; no word is like this."""

FREE, SILENT, EXCERPT, FOUND, APART = range(5)
"""What a word of a prompt belongs to: nothing yet, a part that holds no documents, a text that was found in part or whole,
the words apart."""


_free = re.compile(rb"\x00+")


class Run(NamedTuple):
    """Words in a row that a text shares with a prompt."""

    start: int
    """The place of the first word in the text."""
    position: int
    """The place of that word in the prompts."""
    length: int


class PromptWords:
    """The words of several texts.

    Args:
        parts: the words of each text.
        silent: the numbers of those in which no documents are found.
    """

    def __init__(self, parts: Iterable[Sequence[str]], *, silent: Iterable[int] = ()) -> None:
        self.words: list[str] = []
        self.taken = bytearray()
        self.work = _WORK
        self._part_ends: list[int] = []
        quiet = frozenset(silent)
        for number, words in enumerate(parts):
            self.words += words
            self.taken += bytes([SILENT if number in quiet else FREE]) * len(words)
            self.words.append(_BETWEEN)
            self.taken.append(APART)
            self._part_ends.append(len(self.words))
        self._step = 1 if len(self.words) <= _MANY_WORDS else _WIDE_STEP
        self._shortest = _SHINGLE + self._step - 1  # words that a text needs for its places to be in the index
        self._first: dict[int, int] = {}
        self._more: dict[int, list[int]] = {}
        self._index()

    def _index(self) -> None:
        positions, first = range(0, len(self.words) - _SHINGLE + 1, self._step), self._first
        slices = [positions[begin : begin + _AT_ONCE] for begin in range(0, len(positions), _AT_ONCE)]
        keys = [_shingles(self.words, some) for some in slices]
        for some, own in zip(reversed(slices), reversed(keys), strict=True):
            first.update(zip(reversed(own), reversed(some), strict=True))
        for some, own in zip(slices, keys, strict=True) if len(first) < len(positions) else ():
            for position, key in zip(some, own, strict=True):
                if first[key] != position:
                    more = self._more.setdefault(key, [])
                    if len(more) < _MAX_PLACES:
                        more.append(position)

    def _positions_of_shingle(self, key: int) -> Sequence[int]:
        return (self._first[key], *self._more.get(key, ())) if key in self._first else ()

    def part_of(self, position: int) -> int:
        """The number of the text that has this word."""
        return bisect_right(self._part_ends, position)

    def start_of(self, part: int) -> int:
        """The place of the first word of a text."""
        return self._part_ends[part - 1] if part else 0

    def free_words(self, part: int) -> Iterator[tuple[int, int]]:
        """The places in this text where words in a row belong to nothing: of the first, and after the last."""
        for free in _free.finditer(self.taken, self.start_of(part), self._part_ends[part] - 1):
            yield free.span()

    def is_taken(self, position: int, length: int, most: int) -> bool:
        """Whether more than a tenth of these words belong to something above `most`."""
        free = sum(self.taken.count(owner, position, position + length) for owner in range(most + 1))
        return free * 10 < length * 9

    def take(self, position: int, length: int, owner: int) -> None:
        self.taken[position : position + length] = bytes([owner]) * length

    # Whole texts

    def positions_of(self, texts: Sequence[Sequence[str]]) -> list[list[int]]:
        """All places of each of these texts, in order."""
        short = self._shortest
        positions = [[] if len(words) < short else list(self._positions_of_long(words)) for words in texts]
        numbers = [number for number, words in enumerate(texts) if 0 < len(words) < short]
        for number, found in zip(numbers, self._positions_of_short([texts[number] for number in numbers]), strict=True):
            positions[number] = found
        return positions

    def _positions_of_long(self, words: Sequence[str]) -> Iterator[int]:
        """Where the words around the rarest of a few offsets stand; one of `_step` places in a row is in the index."""
        last = len(words) - _SHINGLE - self._step + 1
        fewest, rarest, keys = _MAX_PLACES * self._step + 1, 0, [0]
        for offset in (0, last // 2, last):
            own = [hash(tuple(words[at : at + _SHINGLE])) for at in range(offset, offset + self._step)]
            count = sum((key in self._first) + len(self._more.get(key, ())) for key in own)
            if count < fewest:
                fewest, rarest, keys = count, offset, own
            if fewest <= 1:
                break
        self.work -= fewest
        if self.work < 0:
            return iter(())
        likely = [
            position - rarest - shift for shift, key in enumerate(keys) for position in self._positions_of_shingle(key)
        ]
        return (position for position in sorted(likely) if self._stands_at(position, words))

    def _positions_of_short(self, texts: Sequence[Sequence[str]]) -> Iterator[list[int]]:
        """Places of texts that are too short for the index: around their rarest word."""
        counts: Counter[str] = Counter()
        wanted: dict[str, list[int]] = {}
        if texts:
            for begin in range(0, len(self.words), _AT_ONCE):
                counts.update(self.words[begin : begin + _AT_ONCE])
            wanted = {min(words, key=counts.__getitem__): [] for words in texts}
            for position, word in enumerate(self.words):
                if word in wanted:
                    wanted[word].append(position)
        for words in texts:
            rarest = min(words, key=counts.__getitem__)
            shift = words.index(rarest)
            yield [position - shift for position in wanted[rarest] if self._stands_at(position - shift, words)]

    def _stands_at(self, position: int, words: Sequence[str]) -> bool:
        self.work -= _VISIT
        end = position + len(words)
        if self.work < 0 or position < 0 or end > len(self.words) or self.words[end - 1] != words[-1]:
            return False
        self.work -= len(words) // 5
        return self.words[position:end] == words

    def positions_of_copies(self, position: int, length: int) -> list[int]:
        """Where else the words at this place stand; none if they are too few for the index."""
        words = self.words[position : position + length]
        if length < self._shortest or (self._step == 1 and hash(tuple(words[:_SHINGLE])) not in self._more):
            return []
        return [copy for copy in self._positions_of_long(words) if copy != position]

    # Parts of texts

    def recurring(self) -> list[int] | None:
        """Places in texts that were found whose words are free somewhere as well, in order; None if much is free."""
        if self.taken.count(FREE) > _MAX_FREE:
            return None
        keys: set[int] = set()
        for free in re.finditer(rb"\x00{%d,}" % _SHINGLE, self.taken):
            keys.update(_shingles(self.words, range(free.start(), free.end() - _SHINGLE + 1)))
        positions: list[int] = []
        for key in keys & self._first.keys():
            if self.work < 0:
                return None
            some = self._positions_of_shingle(key)
            self.work -= len(some)
            positions += [position for position in some if self.taken[position] == FOUND]
        return sorted(positions)

    @property
    def has_runs(self) -> bool:
        """Whether there are words enough in a row."""
        return bool(self._first)

    def shares(self, words: Sequence[str]) -> bool:
        """Whether a run of these words may be here."""
        return not self._first.keys().isdisjoint(_shingles(words, range(len(words) - _SHINGLE + 1)))

    def runs(self, words: Sequence[str], most: int, part: int | None = None) -> dict[int, list[Run]]:
        """By part, the runs of at least `_SHINGLE` words that a text shares with words that belong to nothing above `most`.

        Runs at the same distance from their places in the text are one quotation. The longest quotations come first,
        and a word of the text and one of the prompt count once.
        """
        quotations: dict[int, dict[int, list[Run]]] = defaultdict(lambda: defaultdict(list))
        ends: dict[int, int] = {}
        first, more = self._first, self._more
        for start, key in self._known(words):
            if key not in more and ends.get(first[key] - start, 0) > start:  # as mostly: a run goes on
                continue
            tried = 0
            for position in self._positions_of_shingle(key):
                self.work -= _VISIT
                if self.work < 0 or tried >= _MAX_TRIED:
                    break
                distance = position - start
                if ends.get(distance, 0) <= start and max(self.taken[position : position + _SHINGLE]) <= most:
                    tried += 1
                    run = self._extended(words, start, position, ends.get(distance, 0), most)
                    ends[distance] = run.start + run.length
                    quotations[self.part_of(position)][distance].append(run)
        return {
            number: _longest_first(list(own.values()))
            for number, own in quotations.items()
            if part is None or number == part
        }

    def _known(self, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        """The places of the runs of a text that the prompts have somewhere, and their numbers."""
        first = self._first
        self.work -= len(words) // 4
        for begin in range(0, len(words) - _SHINGLE + 1, _AT_ONCE):
            if self.work < 0:
                return
            keys = _shingles(words, range(begin, min(begin + _AT_ONCE, len(words) - _SHINGLE + 1)))
            yield from compress(enumerate(keys, begin), map(first.__contains__, keys))

    def _extended(self, words: Sequence[str], start: int, position: int, earliest: int, most: int) -> Run:
        """The run around words that stand at this place."""
        ours, taken = self.words, self.taken
        before, after = 0, _SHINGLE
        while start - before > earliest and position - before > 0 and taken[position - before - 1] <= most:
            if ours[position - before - 1] != words[start - before - 1]:
                break
            before += 1
        longest = len(words) - start
        while after < longest and taken[position + after] <= most and ours[position + after] == words[start + after]:
            after += 1
        self.work -= before + after
        return Run(start - before, position - before, before + after)


def _longest_first(quotations: list[list[Run]]) -> list[Run]:
    """What is left of quotations if longer ones go first, and no word counts twice."""
    if len(quotations) == 1:
        return quotations[0]
    chosen: list[Run] = []
    ours: set[int] = set()
    theirs: set[int] = set()
    for quotation in sorted(quotations, key=lambda runs: -sum(run.length for run in runs)):
        for start, position, length in quotation:
            new = [at for at in range(length) if start + at not in ours and position + at not in theirs]
            if len(new) >= _SHINGLE and new[-1] - new[0] < len(new):
                chosen.append(Run(start + new[0], position + new[0], len(new)))
                ours.update(range(start + new[0], start + new[-1] + 1))
                theirs.update(range(position + new[0], position + new[-1] + 1))
    return chosen


def _shingles(words: Sequence[str], positions: range) -> list[int]:
    """A number for the run of words at each of these places, the same for the same words in this process."""
    first, last, step = positions.start, positions[-1] + 1 if positions else 0, positions.step
    return list(map(hash, zip(*(words[first + shift : last + shift : step] for shift in range(_SHINGLE)), strict=True)))
