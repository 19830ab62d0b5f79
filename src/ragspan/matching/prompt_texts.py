"""Which texts are in which parts of prompts, where, and what the parts have of them.

Programs rarely put a passage into a prompt as it is. They number and indent it, dump it as JSON, escape it, cut it off, or
take sentences out of it. So a text is looked for as it is first, then by its words, then without what belongs to a layout,
and then as an excerpt: by runs of words that the prompt has in the text's own order. A place in the prompt counts for one
text only, the one that covers most of it: a short passage inside a longer one, or a heading that several share, proves nothing.
"""

from __future__ import annotations

import functools
import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ragspan.matching.excerpts import ExcerptWriter, aligned, take_between
from ragspan.matching.literal import MIN_APART, Holding, held_in_any_order, held_in_order, occurrences, spans_of
from ragspan.matching.normalization import MAX_COST, Counts, is_laid_out, words_of
from ragspan.matching.prompt_words import APART, EXCERPT, FOUND, FREE, PromptWords, Run
from ragspan.matching.word_positions import Span, WordPositions

_MIN_HEAD = 24
"""Characters of a text's beginning that make an excerpt."""
_MIN_WORDS = 8
"""Words in runs that make an excerpt."""
_MAX_TRIES = 3
_MAX_BARE_COST = MAX_COST // 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """A text found in a part of the prompts."""

    position: int
    """Where it begins; to be compared with other matches in the same part only."""
    whole: bool
    """All words of the text stand there in order."""
    text: str
    """What the part has of the text, in the text's own spelling."""
    part: int
    """The number of the part."""
    find_span: Callable[[], Span] = field(repr=False, compare=False)

    @property
    def span(self) -> Span:
        """The characters that it takes in the part; worked out when it is asked for."""
        return self.find_span()


class _Occurrence(NamedTuple):
    """Where a text is in a part."""

    whole: bool
    runs: Sequence[Run]


@dataclass(kw_only=True, slots=True, eq=False)
class _Spelled:
    """Texts that are looked for and have the same words."""

    number: int
    words: list[str]
    is_cut: bool
    """There are more words, too many to look at."""
    texts: dict[str, Counts] = field(default_factory=dict)
    """Each with what `words_of` noted of it."""
    found: dict[int, _Occurrence] = field(default_factory=dict)
    """By the number of a part."""


class _Waiting(NamedTuple):
    """What stands of a text in a part of a prompt; the largest comes first, and of equal ones the first that is not a copy."""

    size: int
    """The number of words, below 0."""
    tries: int
    number: int
    part: int
    text: _Spelled
    runs: list[Run]
    is_copy: bool = False


class PromptTexts:
    """The parts of prompts, which texts are looked for in; a part that several prompts share is looked at once.

    Args:
        parts: the texts of the parts, each once, the most important first.
        apart: a text that holds no documents wherever it stands, even if it quotes some: the user's own words.
        silent: the numbers of parts that hold no documents: the model's own words.
    """

    def __init__(self, parts: Sequence[str], *, apart: str = "", silent: Iterable[int] = ()) -> None:
        self.parts = parts
        self._user = apart
        self._silent = frozenset(silent)
        self._left = MAX_COST
        self._cut = False
        self._unknown = False
        self._counts: list[Counts] = []
        self._positions: dict[int, WordPositions] = {}
        self._masks: dict[int, list[Span]] = {}
        """The masks at the edges of excerpts, by part."""
        self._literal: dict[int, list[Span]] | None = None
        """Where the texts are, if all were found as they are, and the words were not needed."""

    @functools.cached_property
    def words(self) -> PromptWords:
        """The words of all parts."""
        if self._literal is None:
            return PromptWords(map(self._words_of_part, self.parts), silent=self._silent)
        rows = [self._words_around(part, own) for part, own in enumerate(self._literal_by_part())]
        words = PromptWords((words for words, _ in rows), silent=self._silent)
        for part, (_, taken) in enumerate(rows):
            for start, length, owner in taken:
                words.take(words.start_of(part) + start, length, owner)
        return words

    @functools.cached_property
    def _asked(self) -> Sequence[str]:
        return words_of(self._user, MAX_COST // 10)[0]

    def _words_of_part(self, part: str) -> Sequence[str]:
        counts: Counts = []
        words, self._left = words_of(part, max(0, self._left), counts=counts)
        self._counts.append(counts)
        self._cut = self._cut or self._left < 0
        return words

    def _literal_by_part(self) -> Iterator[list[tuple[int, int, int]]]:
        """What is taken in each part by texts that were found as they are, and by the words apart, and whose it is."""
        is_apart = len(self._user) >= MIN_APART and len(self._asked) > 0
        for number, part in enumerate(self.parts):
            own = [(*span, FOUND) for span in (self._literal or {}).get(number, ())]
            asked = [(*span, APART) for span in self._asked_in(part)] if is_apart else []
            yield [] if number in self._silent else sorted([*own, *asked])

    def _words_around(
        self, number: int, taken: Sequence[tuple[int, int, int]]
    ) -> tuple[Sequence[str], Sequence[tuple[int, int, int]]]:
        """The words of a part, and which of them are taken: the first, how many, and whose."""
        words: list[str] = []
        places: list[tuple[int, int, int]] = []
        part, at = self.parts[number], 0
        for start, end, owner in taken:
            words += words_of(part[at:start])[0]
            new = words_of(part[max(at, start) : end])[0]
            places.append((len(words), len(new), owner))
            words += new
            at = max(at, end)
        return words + words_of(part[at:])[0], places

    def _asked_in(self, part: str) -> list[Span]:
        asked = self._user.strip()
        return [(start, start + len(asked)) for start in occurrences(part, asked)]

    @property
    def is_complete(self) -> bool:
        """False when what was not found may be there all the same: to look further would take too long."""
        return not self._unknown and (self._literal is not None or self.words.work >= 0)

    def miss(self) -> None:
        """Note that something was not looked for to the end."""
        self._unknown = True

    def find(
        self, texts: Sequence[str], *, excerpts: bool = True, order: Sequence[int] | None = None
    ) -> list[list[Match]]:
        """Where each text is, whole or, with `excerpts`, in part: its first place in every part that has it.

        A place counts for one text only, the one that covers most of it. Equal texts share their places.

        Args:
            texts: what is looked for.
            excerpts: look for parts of texts, too.
            order: the first place of each is enough, in these parts; then most prompts need no closer look.
        """
        held = self._held(texts, order)
        if held is not None:
            self._literal = spans_of(held)
            return [
                [
                    _match(part, starts[0], text, (starts[0], starts[0] + len(text)), whole=True)
                    for part, starts in held.get(text, {}).items()
                ]
                for text in texts
            ]
        spelled = sorted(_spelled(texts), key=lambda own: len(own.words), reverse=True)
        self._find_whole(spelled)
        if self.words.work >= 0 and not self._cut:  # else it is known already that more may be there
            self._find_bare([own for own in spelled if not own.found])
        if excerpts:
            self._find_excerpts(spelled)
        matches: dict[str, list[Match]] = {}
        for own in spelled:
            self._unknown = self._unknown or (not own.found and (self._cut or own.is_cut))
            matches |= {text: list(self._matches(text, own)) for text in self._likeliest(list(own.texts))}
        return [matches.get(text, []) for text in texts]

    def _held(self, texts: Sequence[str], order: Sequence[int] | None) -> Holding | None:
        """Where all texts are, if they are there as they are."""
        numbers = [part for part in (range(len(self.parts)) if order is None else order) if part not in self._silent]
        held = None if order is None else held_in_order(texts, self.parts, numbers, self._user)
        if held is None:
            parts = {number: self.parts[number] for number in numbers}
            held = held_in_any_order(texts, parts, self._user)
        return held

    def free(self, part: int) -> list[Span]:
        """Where a part has none of the texts that were found, and not the words apart."""
        if self._literal is not None:
            taken = self._literal.get(part, [])
        else:
            words, positions = self.words, self._positions_in(part)
            first, end = words.start_of(part), words.start_of(part + 1) - 1
            free = [*words.free_words(part)] if part not in self._silent else [(first, end)]
            edges = [first, *(edge for span in free for edge in span), end]
            taken = self._masks.get(part, []) + [
                positions.span(a - first, b - first) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b
            ]
        taken = taken + self._asked_in(self.parts[part])
        pieces, at = [], 0
        for start, stop in sorted(taken):
            pieces.append((at, start))
            at = max(at, stop)
        return [(start, stop) for start, stop in [*pieces, (at, len(self.parts[part]))] if start < stop]

    # Places

    def _positions_in(self, part: int) -> WordPositions:
        if part not in self._positions:
            self._positions[part] = WordPositions(self.parts[part], self._counts[part])
        return self._positions[part]

    def _matches(self, text: str, own: _Spelled) -> Iterator[Match]:
        """Where one of the spellings is."""
        for part, (whole, runs) in sorted(own.found.items()):
            first, positions = self.words.start_of(part), self._positions_in(part)
            position, end = runs[0].position - first, runs[-1].position + runs[-1].length - first
            if whole:
                find = functools.partial(positions.span, position, end)
                yield Match(part=part, position=position, whole=not own.is_cut, text=text, find_span=find)
            else:
                wanted = WordPositions(text, own.texts[text])
                excerpt = ExcerptWriter(text, own.words, wanted, self.parts[part], positions, first, self.words)
                written, (begin, stop) = excerpt.written(runs)
                edges = positions.span(position, end)
                self._masks.setdefault(part, []).extend([(begin, edges[0]), (edges[1], stop)])
                yield _match(part, position, written, (begin, stop), whole=False)

    def _likeliest(self, texts: list[str]) -> list[str]:
        """Those that are there as they are, of texts that differ in case and punctuation only."""
        if len(texts) == 1:
            return texts
        return [text for text in texts if any(text in part for part in self.parts)] or texts

    # Whole texts

    def _find_whole(self, texts: Sequence[_Spelled]) -> None:
        """Take all places of all texts, which come in order of their length, the longest first.

        `apart` takes its places before anything shorter does: what stands in it is a quotation. A text that is longer
        may hold it.
        """
        prompt, apart = self.words, self._asked if len(self._user) >= MIN_APART else ()
        *positions, of_apart = prompt.positions_of([*(own.words for own in texts), apart])
        is_placed = False
        for own, its_positions in zip(texts, positions, strict=True):
            if not is_placed and len(own.words) < len(apart):
                is_placed = True
                self._take_all(of_apart, len(apart), APART)
            if its_positions and own.words == self._asked:  # one of them is the user's
                self._take_all(its_positions[-1:], len(own.words), APART)
            for position in self._take_all(its_positions, len(own.words), FOUND):
                own.found.setdefault(
                    prompt.part_of(position), _Occurrence(whole=True, runs=[Run(0, position, len(own.words))])
                )
        if not is_placed:
            self._take_all(of_apart, len(apart), APART)

    def _take_all(self, positions: Iterable[int], length: int, owner: int) -> list[int]:
        taken: list[int] = []
        for position in positions:
            if not self.words.is_taken(position, length, FREE):
                self.words.take(position, length, owner)
                taken.append(position)
        return taken

    def _find_bare(self, texts: Sequence[_Spelled]) -> None:
        """Take the places of texts that are there but for a layout: a program numbers their lines, or strips their tags."""
        if not texts:
            return
        laid_out = [part for part, text in enumerate(self.parts) if part not in self._silent and is_laid_out(text)]
        changed = {own.number for own in texts if is_laid_out(next(iter(own.texts)))}
        if not (laid_out or changed):
            return
        parts = [part for part in range(len(self.parts)) if part not in self._silent] if changed else laid_out
        left, counts = _MAX_BARE_COST, [Counts() for _ in parts]
        rows: list[Sequence[str]] = []
        for part, own_counts in zip(parts, counts, strict=True):
            row, left = words_of(self.parts[part], max(0, left), counts=own_counts, bare=True)
            rows.append(row)
        bare, positions = PromptWords(rows), {}
        wanted = [
            words_of(next(iter(own.texts)), max(0, left), bare=True)[0] if own.number in changed else own.words
            for own in texts
        ]
        for own, words, found in zip(texts, wanted, bare.positions_of(wanted), strict=True):
            for position in found if len(words) > 1 else ():
                row_number = bare.part_of(position)
                part, first = parts[row_number], bare.start_of(row_number)
                if part not in positions:
                    positions[part] = WordPositions(self.parts[part], counts[row_number], bare=True)
                start, end = positions[part].span(position - first, position - first + len(words))
                low, high = (self.words.start_of(part) + at for at in self._positions_in(part).words_in(start, end))
                if self._take_all([low], high - low, FOUND):
                    own.found.setdefault(part, _Occurrence(whole=True, runs=[Run(0, low, high - low)]))

    # Excerpts

    def _find_excerpts(self, texts: Sequence[_Spelled]) -> None:
        """Take the places of excerpts, that of which most is there first: what it takes is not another's any more."""
        recurring = self.words.recurring() if any(own.found for own in texts) else []
        waiting: list[_Waiting] = []
        for own in texts:
            starts = [position.runs[0].position for position in own.found.values()]
            if not starts or recurring is None or any(_is_among(recurring, start, len(own.words)) for start in starts):
                waiting += self._excerpts(own)
        heapq.heapify(waiting)
        while waiting:
            excerpt = heapq.heappop(waiting)
            free = [run for run in excerpt.runs if not self.words.is_taken(run.position, run.length, FREE)]
            if len(free) == len(excerpt.runs) or excerpt.is_copy:
                self._take_excerpt(excerpt, free)
                for copies in [] if excerpt.is_copy else self._copies(excerpt):
                    heapq.heappush(waiting, copies)
            elif excerpt.tries < _MAX_TRIES:
                for smaller in self._excerpts(excerpt.text, excerpt.part, excerpt.tries + 1):
                    heapq.heappush(waiting, smaller)

    def _excerpts(self, text: _Spelled, part: int | None = None, tries: int = 0) -> Iterator[_Waiting]:
        """What stands of a text in each part, or in one, where it is not whole and that is enough to prove anything."""
        for number, runs in self.words.runs(text.words, FREE, part).items():
            size = _size_of_excerpt(text.words, runs)
            if size and not (number in text.found and text.found[number].whole):
                yield _Waiting(-size, tries, text.number, number, text, runs)

    def _take_excerpt(self, excerpt: _Waiting, free: Sequence[Run]) -> None:
        text = excerpt.text
        is_known = excerpt.is_copy or excerpt.part in text.found
        runs, whole = (free, False) if is_known else aligned(text.words, free, self.words)
        for run in runs:
            self.words.take(run.position, run.length, EXCERPT)
        if not is_known:
            take_between(runs, self.words)
            text.found[excerpt.part] = _Occurrence(whole=whole, runs=runs)

    def _copies(self, excerpt: _Waiting) -> Iterator[_Waiting]:
        """Find the same words elsewhere: they prove nothing of another text, but one that has as many goes first."""
        start, taken, length = excerpt.runs[0]
        positions = self.words.positions_of_copies(taken, length)
        if positions:
            runs = [Run(start, position, length) for position in positions]
            yield excerpt._replace(tries=_MAX_TRIES, runs=runs, is_copy=True)


def _match(part: int, position: int, text: str, span: Span, *, whole: bool) -> Match:
    return Match(part=part, position=position, whole=whole, text=text, find_span=lambda: span)


def _spelled(texts: Iterable[str]) -> Iterable[_Spelled]:
    """The texts by their words; where they are too much, long ones share what is left and are cut off."""
    spelled: dict[str, _Spelled] = {}
    left = MAX_COST
    by_length = sorted(dict.fromkeys(texts), key=len)
    for number, text in enumerate(by_length):
        share, counts = left // (len(by_length) - number), Counts()
        words, rest = words_of(text, share, counts=counts)
        left -= share - max(0, rest)
        if words:
            new = _Spelled(number=number, words=words, is_cut=rest < 0)
            spelled.setdefault(" ".join(words), new).texts[text] = counts
    return spelled.values()


def _is_among(positions: Sequence[int], start: int, length: int) -> bool:
    """Whether one of the places, which are in order, is in this range."""
    at = bisect_left(positions, start)
    return at < len(positions) and positions[at] < start + length


def _size_of_excerpt(words: Sequence[str], runs: Sequence[Run]) -> int:
    """How many words there are of a text, if they are enough to tell that this is an excerpt of it; else 0."""
    size = sum(run.length for run in runs)
    if size >= _MIN_WORDS:
        return size
    head = next((run.length for run in runs if run.start == 0), 0)
    return size if sum(len(word) + 1 for word in words[:head]) > _MIN_HEAD else 0
