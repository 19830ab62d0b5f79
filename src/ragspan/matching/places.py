"""Where texts stand in the parts of prompts, and what the parts have of them.

A text is looked for in three ways: as it is; by all of its words in order; and, where a program cut or masked it, by runs of its
words. What stands there whole is looked for no further. A place counts for one text only, the one that covers most of it: a short
passage inside a longer one, or a heading that several share, proves nothing. The time is linear in the texts, whatever they hold.
"""

from __future__ import annotations

import functools
import itertools
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragspan.matching.words import MAX_CHARACTERS, Run, Span, WordIndex, is_laid_out, unescaped, words_of

FREE, FOUND, ASKED, SILENT = range(4)
"""What a character of a part belongs to: nothing yet, a text that was found, the words apart, a part that holds no texts."""

_SHORT = 20
"""Texts below this length must stand between word boundaries."""
_MIN_APART = 24
"""Characters of the words apart, which then hold no shorter text."""
_MIN_HEAD = 24
"""Characters of a text's beginning that show that it was cut there."""
_MIN_WORDS = 8
"""Words in runs that show a part of a text."""
_MORE_WORDS = 12
"""Words that a program may write where it leaves others out."""
_FEW = 8_000_000
"""Characters that are searched for all texts one by one."""
_MAX_SINGLY = 40
_MAX_PLACES = 1000
_PIECE, _STEP = 12, 8
_EDGE = 80
_MASK = r"(?:\[(?!\d+\])[^\[\]\n]{1,60}\]|<[A-Z][A-Z0-9_ ]{0,40}>|\{\{?[^{}\n]{1,40}\}?\}|[*█]{2,60}|X{3,60}|#{3,60})"
_mask_before = re.compile(rf"{_MASK}[ \t,:;.\-]{{0,3}}$")
_mask_after = re.compile(rf"[ \t,:;.\-]{{0,3}}{_MASK}")
_taken = re.compile(rb"[^\x00]+")


@dataclass(frozen=True, slots=True)
class Match:
    """A text found in a part of the prompts."""

    part: int
    """The number of the part."""
    start: int
    end: int
    whole: bool
    """All words of the text stand there in order."""
    text: str
    """The text itself, if it is whole; else what the part has of it."""

    @property
    def span(self) -> Span:
        return self.start, self.end


class LiteralPlaces:
    """Looks for texts as they are, in parts that may be long: of these, a piece after each few characters is indexed."""

    def __init__(self, parts: Sequence[str], count: int) -> None:
        self._parts = parts
        self._index: dict[str, int] = {}
        self._more: dict[str, list[int]] = {}
        self._left = 400_000
        self.is_complete = True
        if count > _MAX_SINGLY and count * sum(map(len, parts)) > _FEW:
            self._joined = "\x00".join(parts)
            self._starts = [0, *itertools.accumulate(len(part) + 1 for part in parts)]
            starts = range(0, len(self._joined), _STEP)
            pieces = [self._joined[at : at + _PIECE] for at in starts]
            self._index = dict(zip(reversed(pieces), reversed(starts), strict=True))
            if len(self._index) < len(pieces):
                for at, piece in zip(starts, pieces, strict=True):
                    if self._index[piece] != at and len(more := self._more.setdefault(piece, [])) < _MAX_PLACES:
                        more.append(at)

    def of(self, text: str) -> Iterator[tuple[int, int]]:
        """The parts that hold the text, and where it begins."""
        if self._index and len(text) >= _PIECE + _STEP - 1:
            yield from self._indexed(text)
        elif self._index and len(text) * 100 > self._left:
            self.is_complete = False
        else:
            self._left -= 100 if self._index else 0
            for number, part in enumerate(self._parts):
                if text in part:
                    yield from ((number, start) for start in occurrences(part, text))

    def _indexed(self, text: str) -> Iterator[tuple[int, int]]:
        last = len(text) - _PIECE - _STEP + 1
        tried = [range(first, first + _STEP) for first in (last // 2, 0, last)]
        places = [
            [(shift, self._places_of_piece(text[shift : shift + _PIECE])) for shift in shifts] for shifts in tried
        ]
        for shift, own in min(places, key=lambda rows: sum(len(own) for _, own in rows)):
            for at in own:
                self._left -= 1 + len(text) // 1000
                if self._left < 0:
                    self.is_complete = False
                    return
                start = at - shift
                if start >= 0 and self._joined.startswith(text, start):
                    number = bisect_right(self._starts, start) - 1
                    if len(text) >= _SHORT or not _cuts_words(self._joined, start, text):
                        yield number, start - self._starts[number]

    def _places_of_piece(self, piece: str) -> Sequence[int]:
        first = self._index.get(piece)
        return () if first is None else (first, *self._more.get(piece, ()))


def occurrences(text: str, needle: str) -> Iterator[int]:
    """Where a text stands in another one as it is, and between word boundaries if it is short."""
    start = text.find(needle) if needle else -1
    for _ in range(_MAX_PLACES):
        if start < 0:
            return
        if len(needle) >= _SHORT or not _cuts_words(text, start, needle):
            yield start
        start = text.find(needle, start + len(needle))


def _cuts_words(text: str, start: int, needle: str) -> bool:
    """Whether a text that stands in another one begins or ends within a word there."""
    end = start + len(needle)
    before = start > 0 and text[start - 1].isalnum() and text[start].isalnum()
    return before or (end < len(text) and text[end].isalnum() and text[end - 1].isalnum())


class PromptTexts:
    """The parts of prompts, in which texts are looked for; a part that several prompts share is looked at once.

    Args:
        parts: the texts of the parts, each once, the most important first.
        apart: a text that holds no shorter one wherever it stands, even if it quotes some: the user's own words.
        silent: the numbers of parts that hold no texts: the model's own words.
        quoting: the numbers of parts in which only a whole text counts: words that may be an earlier answer.
    """

    def __init__(
        self, parts: Sequence[str], *, apart: str = "", silent: Iterable[int] = (), quoting: Iterable[int] = ()
    ) -> None:
        self.parts = parts
        self._apart = apart.strip()
        self.silent, self._quoting = frozenset(silent), frozenset(quoting)
        self.marks: dict[int, bytearray] = {}
        """By the number of a part, what each of its characters belongs to; other modules write here as well."""
        self.is_complete = True
        """False when what was not found may be there all the same: to look further would take too long."""

    def marks_of(self, part: int) -> bytearray:
        if part not in self.marks:
            self.marks[part] = bytearray([SILENT if part in self.silent else FREE]) * len(self.parts[part])
        return self.marks[part]

    def claim(self, part: int, start: int, end: int, owner: int) -> None:
        """Mark the characters in this range that belong to nothing yet."""
        marks = self.marks_of(part)
        is_free = marks.count(FREE, start, end) == end - start
        marks[start:end] = bytes([owner]) * (end - start) if is_free else marks[start:end].translate(_claims(owner))

    def is_free(self, part: int, start: int, end: int) -> bool:
        """Whether at least nine tenths of these characters belong to nothing."""
        return (end - start - self.marks_of(part).count(FREE, start, end)) * 10 <= end - start

    @functools.cached_property
    def index(self) -> WordIndex:
        """The words that belong to nothing once the texts were found that are there as they are."""
        return self._index()

    def _index(self, *, bare: bool = False) -> WordIndex:
        index = WordIndex([self._open_text(number) for number in range(len(self.parts))], bare=bare)
        self.is_complete &= index.is_complete
        return index

    def _open_text(self, number: int) -> str:
        """A part with holes where something was found."""
        part = self.parts[number]
        if number in self.silent or number in self._quoting:
            return ""
        marks = self.marks.get(number)
        if marks is None or marks.count(FREE) == len(marks):
            return part
        pieces, at = [], 0
        for taken in _taken.finditer(marks):
            start, end = taken.span()
            pieces += [part[at:start], f" {WordIndex.HOLE}{' ' * (end - start - 2)}" if end - start > 1 else " "]
            at = end
        return "".join([*pieces, part[at:]])

    # Looking for texts

    def find(self, texts: Sequence[str], *, cut: bool = True) -> list[list[Match]]:
        """Where each text is, whole or, if `cut`, in part: its first place in every part that has it."""
        found: dict[str, list[Match]] = {text: [] for text in sorted(texts, key=len, reverse=True) if text.strip()}
        self._find_literal(found)
        missing = [text for text, own in found.items() if not any(map(self._counts, own))]
        if missing and self.is_complete:  # else it is known already that more may be there
            missing = self._find_words(missing, found)
        if missing and self.is_complete and self._is_laid_out(missing):
            missing = self._find_words(missing, found, bare=True)
            vars(self).pop("index", None)
        if missing and self.is_complete and cut:
            self._find_cut(missing, found)
        return [found.get(text, []) for text in texts]

    def _counts(self, match: Match) -> bool:
        return match.part not in self.silent and match.part not in self._quoting

    def _add(self, found: list[Match], match: Match) -> None:
        self.claim(match.part, *match.span, FOUND)
        if not found or found[-1].part != match.part:
            found.append(match)

    def _find_literal(self, found: Mapping[str, list[Match]]) -> None:
        """Take all places of all texts that are there as they are, the longest first, and those of the words apart."""
        places = LiteralPlaces(self.parts, len(found) + 1)
        wanted, apart = list(found), self._apart
        if apart and apart not in found:
            shorter = (number for number, text in enumerate(wanted) if len(text) < len(apart))
            wanted.insert(next(shorter, len(wanted)) if len(apart) >= _MIN_APART else len(wanted), apart)
        for text in wanted:
            needle = text.strip()  # templates and formatters leave out the white space around
            own = sorted(place for place in places.of(needle) if place[0] not in self.silent)
            if text == apart:
                for part, start in own[-1:] if text in found else own:  # the last one is the user's
                    self.claim(part, start, start + len(needle), ASKED)
                own = own[:-1] if text in found else []
            for part, start in own:
                if self.is_free(part, start, start + len(needle)):
                    self._add(found[text], Match(part, start, start + len(needle), whole=True, text=text))
        self.is_complete &= places.is_complete

    def _find_words(self, texts: Iterable[str], found: Mapping[str, list[Match]], *, bare: bool = False) -> list[str]:
        """Take the places where all words of a text stand in a row; returns the texts that have none."""
        index, missing = self._index(bare=True) if bare else self.index, []
        for text in texts:
            words = words_of(text, bare=bare)
            is_found = False
            for place in index.places(words) if len(words) > bare else ():
                end = place + len(words)
                if index.is_free(place, len(words)):
                    span = index.span(place, end)
                    index.take(place, end)
                    whole = len(text) < MAX_CHARACTERS
                    self._add(found[text], Match(index.part_of(place), *span, whole=whole, text=text))
                    is_found = True
            if words and not is_found:
                missing.append(text)
        self.is_complete &= index.work >= 0
        return missing

    def _is_laid_out(self, texts: Sequence[str]) -> bool:
        """Whether texts or parts have a layout that a program may add or take away: numbers of lines, tags."""
        parts = [self._open_text(number) for number in range(len(self.parts))]
        return sum(map(len, parts)) <= MAX_CHARACTERS // 4 and any(map(is_laid_out, (*texts, *parts)))

    def _find_cut(self, texts: Iterable[str], found: Mapping[str, list[Match]]) -> None:
        """Take the runs of texts that are not there as a whole, those with most words first."""
        index = self.index
        waiting = []
        for text in texts:
            words = words_of(text)
            for part, runs in index.runs(words).items():
                if size := _size_of_part(words, runs):
                    waiting.append((size, text, words, part, runs))
        for _, text, words, part, first_runs in sorted(waiting, key=lambda one: -one[0]):
            runs = first_runs
            if any(index.taken.count(1, run.position, run.end) for run in runs):
                runs = index.runs(words).get(part, [])
            if _size_of_part(words, runs):
                excerpt = _Excerpt(text, words, runs, self.parts[part], index)
                whole = excerpt.is_whole and len(text) < MAX_CHARACTERS
                shown = text if whole else excerpt.text
                self._add(found[text], Match(part, *excerpt.span, whole=whole, text=shown))
        self.is_complete &= index.work >= 0


def _size_of_part(words: Sequence[str], runs: Sequence[Run]) -> int:
    """How many words there are of a text, if they are enough to tell that this is a part of it; else 0."""
    size = sum(run.length for run in runs)
    if size >= _MIN_WORDS:
        return size
    head = next((run.length for run in runs if run.start == 0), 0)
    return size if sum(len(word) + 1 for word in words[:head]) > _MIN_HEAD else 0


class _Excerpt:
    """What a part of a prompt has of a text: the prompt's words from the first run to the last.

    What stands between two runs belongs to it, unless that is too much: a program masks names and leaves out sentences. So does a
    mask at an edge. It takes the words of the index.
    """

    def __init__(self, text: str, words: Sequence[str], runs: Sequence[Run], part: str, index: WordIndex) -> None:
        self._words, self._part, self._index = words, part, index
        self._runs: list[Run] = []
        for run in sorted(runs, key=lambda run: run.position):
            if not self._runs or run.start >= self._runs[-1].stop:
                self._runs.append(run)
        self._complete_end()
        self._complete_beginning()
        self.is_whole = self._has_all_words()
        front, back = self._mask_at(-1), self._mask_at(1)
        groups: list[list[Run]] = [[self._runs[0]]]
        for before, after in itertools.pairwise(self._runs):
            if self._belong_together(before, after):
                groups[-1].append(after)
            else:
                groups.append([after])
        for group in groups:
            index.take(group[0].position, group[-1].end)
        spans = [index.span(group[0].position, group[-1].end) for group in groups]
        spans[0] = spans[0][0] - len(front), spans[0][1]
        spans[-1] = spans[-1][0], spans[-1][1] + len(back) if back else self._end_of_cut(text, spans[-1][1])
        self.span = spans[0][0], spans[-1][1]
        self.text = " … ".join(unescaped(part[slice(*span)]).replace('\\"', '"').strip() for span in spans)

    def _complete_beginning(self) -> None:
        """Add words before the first run that are too few for a run of their own, where all of them stand right before it."""
        run = self._runs[0]
        low = max(0, run.position - 2 * run.start - _MORE_WORDS)
        at = _distance(self._words[: run.start][::-1], self._index.words[low : run.position][::-1])
        if at and self._index.is_open(run.position - at, run.position):
            self._runs.insert(0, Run(0, run.position - at, run.start))

    def _complete_end(self) -> None:
        run = self._runs[-1]
        rest = self._words[run.stop :]
        at = _distance(rest, self._index.words[run.end : run.end + 2 * len(rest) + _MORE_WORDS])
        if at and self._index.is_open(run.end, run.end + at):
            self._runs.append(Run(run.stop, run.end + at - len(rest), len(rest)))

    def _has_all_words(self) -> bool:
        """Whether nothing of the text is missing, though other words may stand between."""
        if self._runs[0].start or self._runs[-1].stop < len(self._words):
            return False
        for before, after in itertools.pairwise(self._runs):
            missing, between = self._words[before.stop : after.start], self._index.words[before.end : after.position]
            rest = iter(between)
            if not self._belong_together(before, after) or (
                "".join(between) != "".join(missing) and not all(word in rest for word in missing)
            ):
                return False
        return True

    def _belong_together(self, before: Run, after: Run) -> bool:
        """Whether the prompt's words between two runs may stand for what is missing there."""
        most = 2 * (after.start - before.stop) + _MORE_WORDS
        return after.position - before.end <= most and self._index.is_open(before.end, after.position)

    def _mask_at(self, step: int) -> str:
        """What stands in brackets at an edge where words are missing; the text's words behind it become a run."""
        while True:
            run = self._runs[0 if step < 0 else -1]
            start, end = self._index.span(run.position, run.end)
            if not (run.start if step < 0 else len(self._words) - run.stop):
                return ""
            around = self._part[max(0, start - _EDGE) : start] if step < 0 else self._part[end : end + _EDGE]
            mask = _mask_before.search(around) if step < 0 else _mask_after.match(around)
            if mask is None:
                return ""
            hidden = len(words_of(mask[0]))
            at, place = (run.start - 1, run.position - hidden - 1) if step < 0 else (run.stop, run.end + hidden)
            lengths = [
                (skip, self._index.shared(self._words, at + step * skip, place, step)) for skip in range(_MORE_WORDS)
            ]
            skip, length = next(((skip, length) for skip, length in lengths if length), (0, 0))
            if not length:
                return mask[0]
            if step < 0:
                self._runs.insert(0, Run(at - skip - length + 1, place - length + 1, length))
            else:
                self._runs.append(Run(at + skip, place, length))

    def _end_of_cut(self, text: str, end: int) -> int:
        """Where the part ends: with the marks that follow in the text, too, and with the rest of a word that was torn."""
        part = self._part
        while end < len(part) and part[end].isalnum() and part[end - 1].isalnum():
            end += 1
        following = part[end : end + 1]
        is_mark = bool(following) and not following.isalnum() and not following.isspace()
        return end + 1 if is_mark and part[max(0, end - _MORE_WORDS) : end + 1] in text else end


def _distance(wanted: Sequence[str], words: Sequence[str]) -> int | None:
    """How many of these words are needed until all wanted ones have come, in order; None if they do not, or are many."""
    if not 0 < len(wanted) <= _EDGE:
        return None
    at = 0
    for count, word in enumerate(words, 1):
        at += word == wanted[at]
        if at == len(wanted):
            return count
    return None


@functools.cache
def _claims(owner: int) -> bytes:
    return bytes([owner, *range(1, 256)])
