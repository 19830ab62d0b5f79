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
from os.path import commonprefix
from typing import NamedTuple

from ragspan.matching.words import Run, Span, WordIndex, has_words, unescaped, words_of
from ragspan.turns import with_turns

FREE, FOUND, ASKED, SILENT = range(4)
"""What a character of a part belongs to: nothing yet, a text that was found, the words apart, a part that holds no texts."""

_SHORT = 20  # texts below this length must stand between word boundaries
_MIN_APART = 24  # characters of the words apart, which then hold no shorter text
_MIN_HEAD = 24  # characters of a text's beginning that show that it was cut there
_MIN_WORDS = 8  # words in runs that show a part of a text; of a short one two thirds of them do
_MORE_WORDS = 12  # words that a program may write where it leaves others out
_MAX_PLACES = 1000
_MAX_REST = 80
_FEW, _MOST = 8_000_000, 400_000_000
"""Characters that are searched for all texts together: before there is an index, and for short texts at most."""
_FEW_TEXTS = 40  # that an index would not pay for, however long the prompts are
_PIECE, _STEP = 12, 8
_MAX_LOOKED_UP = 400_000  # places that are looked at, of all texts together
_EDGE = 80
_MOST_BEHIND, _FEW_ROWS, _MOST_ALIKE = 20_000, 20, 100  # characters, rows of words, and texts
_FEW_WORDS, _NEAR, _QUOTES = 3, 8, " \t\"'`*_"
_HEAD = 64
_BETWEEN = "\x00"
_MASK = r"(?:\[(?!\d+\])[^\[\]\n]{1,60}\]|<[A-Z][A-Z0-9_ ]{0,40}>|\{\{?[^{}\n]{1,40}\}?\}|[*█]{2,60}|X{3,60}|#{3,60})"
_mask_before = re.compile(rf"{_MASK}[ \t,:;.\-]{{0,3}}$")
_mask_after = re.compile(rf"[ \t,:;.\-]{{0,3}}{_MASK}")
_taken = re.compile(rb"[^\x00]+")
_CLAIMS = [bytes([owner, *range(1, 256)]) for owner in range(9)]


class Match(NamedTuple):
    part: int  # the number of the part
    start: int
    end: int
    whole: bool  # all words of the text stand there in order
    text: str  # the text itself, if it is whole; else what the part has of it


def occurrences(text: str, needle: str) -> Iterator[int]:
    """Where a text stands in another one as it is, and between word boundaries if it is short."""
    head, length, end = needle[:_HEAD], len(needle), 0
    for _ in range(_MAX_PLACES if needle else 0):
        start = text.find(head, end)  # mostly, all of it stands where its beginning does: to look for that is quicker
        if start >= 0 and not text.startswith(needle, start):
            start = text.find(needle, start + 1)
        if start < 0:
            return
        end = start + length
        if length >= _SHORT or not (
            (start > 0 and text[start - 1].isalnum() and text[start].isalnum())
            or (end < len(text) and text[end].isalnum() and text[end - 1].isalnum())
        ):
            yield start


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
        self.marks = [bytearray([SILENT if at in self.silent else FREE]) * len(part) for at, part in enumerate(parts)]
        """By the number of a part, what each of its characters belongs to; other modules write here as well."""
        self.is_complete = True
        """False when what was not found may be there all the same: to look further would take too long."""
        self._joined = _BETWEEN.join(parts)  # to look for a text in each of many parts takes much longer
        self._starts = [0, *itertools.accumulate(len(part) + len(_BETWEEN) for part in parts)]
        self._size = len(self._joined)
        self._searched = self._looked_up = 0

    def claim(self, part: int, owner: int, *spans: Span) -> None:
        """Mark the characters in these ranges that belong to nothing yet."""
        marks = self.marks[part]
        for start, end in spans:
            marks[start:end] = marks[start:end].translate(_CLAIMS[owner])

    def is_free(self, part: int, start: int, end: int) -> bool:
        """Whether at least nine tenths of these characters belong to nothing."""
        return (end - start - self.marks[part].count(FREE, start, end)) * 10 <= end - start

    @functools.cached_property
    def index(self) -> WordIndex:
        """The words that belong to nothing once the texts were found that are there as they are."""
        texts: list[str] = []
        for number, part in enumerate(self.parts):
            marks, at, pieces = self.marks[number], 0, list[str]()
            for taken in _taken.finditer(marks):  # leaves holes where something was found
                start, end = taken.span()
                pieces += [part[at:start], f" {WordIndex.HOLE}{' ' * (end - start - 2)}" if end - start > 1 else " "]
                at = end
            is_read = number not in self.silent and number not in self._quoting
            texts.append("".join([*pieces, part[at:]]) if is_read else "")
        index = WordIndex(texts)
        self.is_complete &= index.is_complete
        return index

    # Looking for texts

    def places_of(self, text: str) -> list[tuple[int, int]]:
        """The parts that hold a text as it is, and where it begins, in order; not all once too much was looked for."""
        if self._searched > max(_FEW, _FEW_TEXTS * self._size) and len(text) >= _SHORT:
            return self._indexed_places_of(text)
        self._searched += self._size
        if self._searched > _MOST:
            self.is_complete = False
            return []
        return list(map(self._in_part, occurrences(self._joined, text)))

    def _in_part(self, at: int) -> tuple[int, int]:
        """A place in that text as a part and a place in it."""
        number = bisect_right(self._starts, at) - 1
        return number, at - self._starts[number]

    @functools.cached_property
    def _pieces(self) -> Mapping[str, list[int]]:
        """Where that text has a piece of each few characters after each few."""
        joined, places = self._joined, dict[str, list[int]]()
        for at in range(0, len(joined), _STEP):
            if len(own := places.setdefault(joined[at : at + _PIECE], [])) < _MAX_PLACES:
                own.append(at)
        return places

    def _indexed_places_of(self, text: str) -> list[tuple[int, int]]:
        joined, pieces = self._joined, self._pieces
        last, found = len(text) - _PIECE - _STEP + 1, list[int]()
        # Each place of the text has one of the pieces that begin within so many characters of it: the rarest ones tell.
        tried = (
            [(shift, pieces.get(text[shift : shift + _PIECE], ())) for shift in range(first, first + _STEP)]
            for first in (last // 2, 0, last)
        )
        for shift, own in min(tried, key=lambda row: sum(len(places) for _, places in row)):
            self._looked_up += len(own) * (1 + len(text) // 1000)
            if self._looked_up > _MAX_LOOKED_UP:
                self.is_complete = False
                break
            found += [at - shift for at in own if at >= shift and joined.startswith(text, at - shift)]
        return list(map(self._in_part, sorted(found)))

    def find(self, texts: Sequence[str]) -> list[list[Match]]:
        """Where each text is, whole or in part: its first place in every part that has it."""
        found: dict[str, list[Match]] = {text: [] for text in sorted(texts, key=len, reverse=True) if text.strip()}
        missing = self._find_literal(found)
        if missing and self.is_complete:  # else it is known already that more may be there
            missing = self._find_words(missing, found)
        if missing and self.is_complete:
            self._find_limited(missing, found)
            if any(map(found.__getitem__, missing)):
                del self.index  # to be made anew without them
            self._find_cut(missing, found)
        return [found.get(text, []) for text in texts]

    def _add(self, found: list[Match], match: Match) -> None:
        self.claim(match.part, FOUND, (match.start, match.end))
        if not found or found[-1].part != match.part:
            found.append(match)

    def _find_literal(self, found: Mapping[str, list[Match]]) -> list[str]:
        """Take all places of all texts that are there as they are, the longest first, and those of the words apart.

        Returns the texts that are not; one that stands inside of a longer one is.
        """
        wanted, apart, missing = list(found), self._apart, []
        if apart and apart not in found:
            shorter = (number for number, text in enumerate(wanted) if len(text) < len(apart))
            wanted.insert(next(shorter, len(wanted)) if len(apart) >= _MIN_APART else len(wanted), apart)
        for text in with_turns(wanted):
            needle = text.strip()  # templates and formatters leave out the white space around
            own = self.places_of(needle)
            own = [place for place in own if place[0] not in self.silent] if self.silent else own
            if text == apart:
                for part, start in own[-1:] if text in found else own:  # the last one is the user's
                    span = start, start + len(needle)
                    if has_words(apart, _FEW_WORDS) or _is_alone(self.parts[part], span):
                        self.claim(part, ASKED, span)
                own = own[:-1] if text in found else []
            for part, start in own:
                if self.is_free(part, start, start + len(needle)):
                    self._add(found[text], Match(part, start, start + len(needle), whole=True, text=text))
            if text in found and (not own or (self._quoting and all(part in self._quoting for part, _ in own))):
                missing.append(text)
        return missing

    def _find_words(self, texts: Iterable[str], found: Mapping[str, list[Match]]) -> list[str]:
        """Take the places where all words of a text stand in a row; returns the texts that have none."""
        index, missing = self.index, []
        for text in with_turns(texts):
            words = words_of(text)
            is_found = False
            for place in index.places(words):
                end = place + len(words)
                if index.is_free(place, len(words)):
                    span = index.span(place, end)
                    index.take(place, end)
                    self._add(found[text], Match(index.part_of(place), *span, whole=True, text=text))
                    is_found = True
            if words and not is_found:
                missing.append(text)
        self.is_complete &= index.work >= 0
        return missing

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
                span, shown, whole = _excerpt(text, words, runs, self.parts[part], index)
                self._add(found[text], Match(part, *span, whole=whole, text=text if whole else shown))
        # What is still missing may have been cut after a few, long words.
        for text in with_turns(text for text in texts if not found[text]):
            for match in self._heads(text.strip(), 2):
                self._add(found[text], match)
        self.is_complete &= index.work >= 0

    def _find_limited(self, texts: Iterable[str], found: Mapping[str, list[Match]]) -> None:
        """Take the beginnings of texts that a limit cut: a line ends there, and nothing of the text stands behind."""
        rows = functools.cache(lambda text: f" {' '.join(words_of(text[:_MOST_BEHIND]))} ")
        for text in with_turns(texts):
            wanted = text.strip()
            for match in self._heads(wanted, _MIN_WORDS):
                rest = wanted[match.end - match.start :]
                after = self.parts[match.part][match.end : match.end + len(wanted)]
                is_end = not after.strip() or after.lstrip(" ")[:1] in {"\n", "\u2026"} or after.startswith("...")
                goes_on = words_of(rest[:_EDGE])[:1] == words_of(after[:_EDGE])[:1]  # in the next line
                if not is_end or goes_on or any(one.part == match.part for one in found[text]):
                    continue
                behind = [row for row in _rows_of(rest) if row in rows(after)][:_FEW_ROWS]
                alike = (rows(one) for one in itertools.islice(found, _MOST_ALIKE) if one is not text)
                for other in alike if behind else ():  # which may be what stands behind this one
                    behind = [row for row in behind if row not in other]
                if not behind:
                    self._add(found[text], match)

    def _heads(self, text: str, least: int) -> Iterator[Match]:
        """Where the beginning of a text stands that nobody has taken yet, as far as it goes: of so many words at least."""
        for number, start in self.places_of(text[:_MIN_HEAD]) if len(text) > _MIN_HEAD else ():
            part = self.parts[number]
            shown = commonprefix([text, part[start : start + len(text)]])  # noqa: RUF071  (no paths)
            end = start + len(shown)
            is_cut = has_words(shown, least) and not part[end : end + 1].isalnum()
            if is_cut and number not in self.silent | self._quoting and self.is_free(number, start, end):
                yield Match(number, start, end, whole=False, text=shown.rstrip())


def _rows_of(text: str) -> Iterator[str]:
    """Some words in a row, of each few words of a text."""
    words = words_of(text[:_MOST_BEHIND])
    starts = range(0, max(1, len(words) - _MIN_WORDS + 1), _MIN_WORDS // 2)
    return (f" {' '.join(words[at : at + _MIN_WORDS])} " for at in starts)


def _is_alone(part: str, span: Span) -> bool:
    """Whether what stands in this range is a line, or what follows a colon or a tag: a question of a word or two is a part of others' texts elsewhere."""
    before, after = part[max(0, span[0] - _NEAR) : span[0]], part[span[1] : span[1] + _NEAR]
    return before.rstrip(_QUOTES)[-1:] in {"", "\n", ":", ">"} and after.lstrip(_QUOTES)[:1] in {"", "\n", "<"}


def _size_of_part(words: Sequence[str], runs: Sequence[Run]) -> int:
    """How many words there are of a text, if they are enough to tell that this is a part of it; else 0."""
    size = sum(run.length for run in runs)
    is_head = sum(len(word) + 1 for run in runs if run.start == 0 for word in words[: run.length]) > _MIN_HEAD
    return size if is_head or size >= min(_MIN_WORDS, (2 * len(words) + 2) // 3) else 0


def _excerpt(
    text: str, words: Sequence[str], found: Sequence[Run], part: str, index: WordIndex
) -> tuple[Span, str, bool]:
    """What a part of a prompt has of a text: where, in the prompt's words from the first run to the last, and if it is all.

    Words in between that may stand for what is missing, as a mask does, belong to it; where more is between, it has pieces. The
    words of these runs are taken.
    """
    runs: list[Run] = []
    for run in sorted(found, key=lambda run: run.position):
        if not runs or run.start >= runs[-1].stop:
            runs.append(run)
    last, first = runs[-1], runs[0]  # few words before and after them make no run of their own
    rest = words[last.stop :]
    at = _distance(rest, index.words[last.end : last.end + 2 * len(rest) + _MORE_WORDS])
    if at and index.is_open(last.end, last.end + at):
        runs.append(Run(last.stop, last.end + at - len(rest), len(rest)))
    low = max(0, first.position - 2 * first.start - _MORE_WORDS)
    at = _distance(words[: first.start][::-1], index.words[low : first.position][::-1])
    if at and index.is_open(first.position - at, first.position):
        runs.insert(0, Run(0, first.position - at, first.start))
    pieces = [[runs[0].position, runs[0].end]]
    is_whole = not runs[0].start and runs[-1].stop == len(words)
    for before, after in itertools.pairwise(runs):
        missing, between = words[before.stop : after.start], index.words[before.end : after.position]
        is_close = len(between) <= 2 * len(missing) + _MORE_WORDS and index.is_open(before.end, after.position)
        if is_close:
            pieces[-1][1] = after.end
        else:
            pieces.append([after.position, after.end])
        is_whole &= is_close and ("".join(between) == "".join(missing) or _distance(missing, between) is not None)
    for position, end in pieces:
        index.take(position, end)
    spans = [index.span(position, end) for position, end in pieces]
    lacks = {"lacks_head": runs[0].start > 0, "lacks_tail": runs[-1].stop < len(words)}
    start, end = _with_edges(part, text, (spans[0][0], spans[-1][1]), **lacks)
    spans[0] = start, spans[0][1]
    spans[-1] = spans[-1][0], end
    shown = [unescaped(part[slice(*span)]).replace('\\"', '"').strip() for span in spans]
    return (start, end), " … ".join(shown), is_whole


def _with_edges(part: str, text: str, span: Span, *, lacks_head: bool, lacks_tail: bool) -> Span:
    """An excerpt with a mask at its edge and what the part has of the text beyond, or with the rest of a torn word and a mark."""
    start, end = span
    if lacks_head and (mask := _mask_before.search(part[max(0, start - _EDGE) : start])):
        start -= len(mask[0])
        head = part[max(0, start - _EDGE) : start]
        start -= next((size for size in range(len(head), 2, -1) if head.endswith(text[:size])), 0)
    if lacks_tail and (mask := _mask_after.match(part, end)):
        end = mask.end()
        tail = part[end : end + _EDGE]
        return start, end + next((size for size in range(len(tail), 2, -1) if tail.startswith(text[-size:])), 0)
    while end < len(part) and part[max(0, end - _MORE_WORDS) : end + 1] in text:
        end += 1
    return start, end


def _distance(wanted: Sequence[str], words: Sequence[str]) -> int | None:
    """How many of these words are needed until all wanted ones have come, in order; None if they do not, or are many."""
    at = 0
    for count, word in enumerate(words if 0 < len(wanted) <= _MAX_REST else (), 1):
        at += word == wanted[at]
        if at == len(wanted):
            return count
    return None if wanted else 0
