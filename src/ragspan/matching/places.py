"""Where texts stand in the parts of prompts, and what the parts have of them.

A text is looked for in three ways: as it is; by all of its words in order; and, where a program cut or masked it, by runs of its
words. What stands there whole is looked for no further. A place counts for one text only, the one that covers most of it: a short
passage inside a longer one, or a heading that several share, proves nothing. The time is linear in the texts, whatever they hold.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragspan.matching.words import MAX_CHARACTERS, Run, Span, WordIndex, is_laid_out, spans_of, unescaped, words_of

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
_ELISION = " … "
_EDGE = 80
_MASK = r"(?:\[(?!\d+\])[^\[\]\n]{1,60}\]|<[A-Z][A-Z0-9_ ]{0,40}>|\{\{?[^{}\n]{1,40}\}?\}|[*█]{2,60}|X{3,60}|#{3,60})"
_mask_before = re.compile(rf"{_MASK}[ \t,:;.\-]{{0,3}}$")
_mask_after = re.compile(rf"[ \t,:;.\-]{{0,3}}{_MASK}")


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
    """What the part has of the text, in the text's own spelling."""

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
                    number = _last_at_most(self._starts, start)
                    if len(text) >= _SHORT or not cuts_words(self._joined, start, text):
                        yield number, start - self._starts[number]

    def _places_of_piece(self, piece: str) -> Sequence[int]:
        first = self._index.get(piece)
        return () if first is None else (first, *self._more.get(piece, ()))


def occurrences(text: str, needle: str) -> Iterator[int]:
    """Where a text stands in another one as it is, and between word boundaries if it is short."""
    return _from(text, needle, 0)


def _from(text: str, needle: str, start: int) -> Iterator[int]:
    start = text.find(needle, start) if needle else -1
    for _ in range(_MAX_PLACES):
        if start < 0:
            return
        if len(needle) >= _SHORT or not cuts_words(text, start, needle):
            yield start
        start = text.find(needle, start + len(needle))


def cuts_words(text: str, start: int, needle: str) -> bool:
    """Whether a text that stands in another one begins or ends within a word there."""
    end = start + len(needle)
    before = start > 0 and text[start - 1].isalnum() and text[start].isalnum()
    after = end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
    return before or after


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
        self._cut = False

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

    @property
    def is_complete(self) -> bool:
        """False when what was not found may be there all the same: to look further would take too long."""
        return not self._cut

    def miss(self) -> None:
        """Note that something was not looked for to the end."""
        self._cut = True

    @functools.cached_property
    def index(self) -> WordIndex:
        """The words that belong to nothing once the texts were found that are there as they are."""
        return self._index()

    def _index(self, *, bare: bool = False) -> WordIndex:
        texts = [self._open_text(number) for number in range(len(self.parts))]
        index = WordIndex(texts, bare=bare)
        self._cut = self._cut or not index.is_complete
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
        if not self._find_in_order(dict.fromkeys(text for text in texts if text in found), found):
            self._find_literal(found)
        missing = [text for text, own in found.items() if not any(self._counts(match) for match in own)]
        if missing and not self._cut:  # else it is known already that more may be there
            words = {text: words_of(text) for text in missing}
            missing = [text for text in missing if words[text] and not self._find_words(text, words[text], found)]
        if missing and (bare := self._bare_words(missing)):
            missing = [text for text in missing if not self._find_bare(text, bare[text], found)]
        if cut and missing and not self._cut:
            self._find_cut({text: words[text] for text in missing}, found)
        return [found.get(text, []) for text in texts]

    def _counts(self, match: Match) -> bool:
        return match.part not in self.silent and match.part not in self._quoting

    def _find_in_order(self, texts: Iterable[str], found: Mapping[str, list[Match]]) -> bool:
        """Whether very many texts stand in the parts as they are and in this order, one after the other, as mostly."""
        wanted = list(texts)
        if len(wanted) * sum(map(len, self.parts)) <= _FEW or any(text in self._apart for text in wanted):
            return False
        numbers = [number for number in range(len(self.parts)) if number not in self.silent | self._quoting]
        places: list[tuple[int, int]] = []
        at, end = 0, 0
        for text in wanted:
            start = -1
            while at < len(numbers) and (start := next(_from(self.parts[numbers[at]], text, end), -1)) < 0:
                at, end = at + 1, 0
            if start < 0:
                return False
            places.append((numbers[at], start))
            end = start + len(text)
        for text, (part, start) in zip(wanted, places, strict=True):
            self.claim(part, start, start + len(text), FOUND)
            found[text].append(Match(part, start, start + len(text), whole=True, text=text))
        for part, start in LiteralPlaces(self.parts, 1).of(self._apart) if self._apart else ():
            self.claim(part, start, start + len(self._apart), ASKED)
        return True

    def _find_literal(self, found: Mapping[str, list[Match]]) -> None:
        """Take all places of all texts that are there as they are, the longest first, and those of the words apart."""
        places = LiteralPlaces(self.parts, len(found) + 1)
        is_placed = len(self._apart) < _MIN_APART and self._apart not in found
        for text in found:
            if not is_placed and len(text) < len(self._apart):
                self._take_apart(places)
                is_placed = True
            own = sorted((part, start) for part, start in places.of(text) if part not in self.silent)
            if text == self._apart and own:  # the last one is the user's
                self.claim(own[-1][0], own[-1][1], own[-1][1] + len(text), ASKED)
                del own[-1]
            for part, start in own:
                if self.is_free(part, start, start + len(text)):
                    self.claim(part, start, start + len(text), FOUND)
                    if not found[text] or found[text][-1].part != part:
                        found[text].append(Match(part, start, start + len(text), whole=True, text=text))
        self._take_apart(places)
        self._cut = self._cut or not places.is_complete

    def _take_apart(self, places: LiteralPlaces) -> None:
        for part, start in places.of(self._apart) if self._apart else ():
            self.claim(part, start, start + len(self._apart), ASKED)

    def _find_words(self, text: str, words: list[str], found: Mapping[str, list[Match]]) -> bool:
        """Take the places where all words of a text stand in a row."""
        index = self.index
        for place in index.places(words):
            if index.is_free(place, len(words)):
                self._take(text, place, place + len(words), found, text, whole=len(text) < MAX_CHARACTERS)
        self._cut = self._cut or index.work < 0
        return bool(found[text])

    def _take(
        self, text: str, place: int, end: int, found: Mapping[str, list[Match]], shown: str, *, whole: bool
    ) -> None:
        index = self.index
        part, (start, stop) = index.part_of(place), index.span(place, end)
        index.take(place, end - place)
        self.claim(part, start, stop, FOUND)
        if not found[text] or found[text][-1].part != part:
            found[text].append(Match(part, start, stop, whole=whole, text=shown))

    def _bare_words(self, texts: Sequence[str]) -> Mapping[str, list[str]]:
        """The words of texts without their layout, if they or the parts have one: a program numbers lines, or strips tags."""
        parts = [self._open_text(number) for number in range(len(self.parts))]
        if sum(map(len, parts)) > MAX_CHARACTERS // 4 or not any(map(is_laid_out, (*texts, *parts))):
            return {}
        return {text: words_of(text, bare=True) for text in texts}

    def _find_bare(self, text: str, words: list[str], found: Mapping[str, list[Match]]) -> bool:
        for place in self._bare.places(words) if len(words) > 1 else ():
            if self._bare.is_free(place, len(words)):
                part, (start, end) = self._bare.part_of(place), self._bare.span(place, place + len(words))
                self._bare.take(place, len(words))
                self.index.take(first := self.index.words_between(part, start, end)[0], self._last(part, end) - first)
                self.claim(part, start, end, FOUND)
                found[text].append(Match(part, start, end, whole=True, text=text))
        return bool(found[text])

    def _last(self, part: int, end: int) -> int:
        return self.index.words_between(part, end, end)[0]

    @functools.cached_property
    def _bare(self) -> WordIndex:
        return self._index(bare=True)

    # Parts of texts

    def _find_cut(self, texts: Mapping[str, Sequence[str]], found: Mapping[str, list[Match]]) -> None:
        """Take the runs of texts that are not there as a whole, those with most words first."""
        index = self.index
        waiting = []
        for text, words in texts.items():
            for part, runs in index.runs(words).items():
                if size := _size_of_part(words, runs):
                    waiting.append((size, text, part, runs))
        for _, text, part, first_runs in sorted(waiting, key=lambda one: -one[0]):
            runs = first_runs
            if any(index.taken.count(1, run.position, run.position + run.length) for run in runs):
                runs = index.runs(texts[text]).get(part, [])
                if not _size_of_part(texts[text], runs):
                    continue
            part_of_text = _PartOfText(text, texts[text], runs, self.parts[part], index)
            shown, (start, end) = part_of_text.written()
            is_whole = part_of_text.is_whole and len(text) < MAX_CHARACTERS
            for first, last in part_of_text.places:
                index.take(first, last - first)
            self.claim(part, start, end, FOUND)
            found[text].append(Match(part, start, end, whole=is_whole, text=text if is_whole else shown))
        self._cut = self._cut or index.work < 0


def _size_of_part(words: Sequence[str], runs: Sequence[Run]) -> int:
    """How many words there are of a text, if they are enough to tell that this is a part of it; else 0."""
    size = sum(run.length for run in runs)
    if size >= _MIN_WORDS:
        return size
    head = next((run.length for run in runs if run.start == 0), 0)
    return size if sum(len(word) + 1 for word in words[:head]) > _MIN_HEAD else 0


class _PartOfText:
    """What a part of a prompt has of a text: its words from the first run to the last, in the text's own spelling.

    What stands between two runs is the prompt's: a program masks names and leaves out sentences. So is a mask at an edge.
    """

    def __init__(self, text: str, words: Sequence[str], runs: Sequence[Run], part: str, index: WordIndex) -> None:
        self._text, self._words, self._part, self._index = text, words, part, index
        self._runs: list[Run] = []
        for run in sorted(runs, key=lambda run: run.position):
            if not self._runs or run.start >= self._runs[-1].start + self._runs[-1].length:
                self._runs.append(run)
        self._complete_edges()
        self.is_whole = self._has_all_words()
        self.front, self.back = self._mask_at(-1), self._mask_at(1)

    @property
    def places(self) -> Iterator[Span]:
        """The words of the index that it takes: the runs, and what stands for missing words between them."""
        for run in self._runs:
            yield run.position, run.position + run.length
        for before, after in itertools.pairwise(self._runs):
            if self._stands_for_missing(before, after):
                yield before.position + before.length, after.position

    def _complete_edges(self) -> None:
        """Add words of the text's ends that are too few for a run of their own, where they stand right beside."""
        first, last = self._runs[0], self._runs[-1]
        theirs = self._index.words
        head, tail = self._words[: first.start], self._words[last.start + last.length :]
        if 0 < len(head) <= _EDGE:
            low = max(0, first.position - 2 * len(head) - _MORE_WORDS)
            at = _place_of(head, theirs[low : first.position], last=True)
            if at is not None and self._index.is_open(low + at[0], first.position):
                self._runs.insert(0, Run(0, low + at[0], at[1]))
        if 0 < len(tail) <= _EDGE:
            start = last.position + last.length
            at = _place_of(tail, theirs[start : start + 2 * len(tail) + _MORE_WORDS], last=False)
            if at is not None and self._index.is_open(start, start + sum(at)):
                self._runs.append(Run(len(self._words) - len(tail), start + at[0], at[1]))

    def _has_all_words(self) -> bool:
        """Whether nothing of the text is missing, though other words may stand between."""
        if self._runs[0].start or self._runs[-1].start + self._runs[-1].length < len(self._words):
            return False
        for before, after in itertools.pairwise(self._runs):
            missing = self._words[before.start + before.length : after.start]
            between = self._index.words[before.position + before.length : after.position]
            if not self._stands_for_missing(before, after):
                return False
            rest = iter(between)
            if "".join(between) != "".join(missing) and not all(word in rest for word in missing):
                return False
        return True

    def _stands_for_missing(self, before: Run, after: Run) -> bool:
        """Whether the prompt's words between two runs may stand for what is missing there."""
        start, end = before.position + before.length, after.position
        missing = after.start - before.start - before.length
        return end - start <= 2 * missing + _MORE_WORDS and self._index.is_open(start, end)

    def _mask_at(self, step: int) -> str:
        """What stands in brackets at an edge where words are missing, with the text's words behind it."""
        run = self._runs[0 if step < 0 else -1]
        start, end = self._index.span(run.position, run.position + run.length)
        missing = run.start if step < 0 else len(self._words) - run.start - run.length
        while missing:
            around = self._part[max(0, start - _EDGE) : start] if step < 0 else self._part[end : end + _EDGE]
            mask = _mask_before.search(around) if step < 0 else _mask_after.match(around)
            if mask is None:
                return ""
            more = self._run_behind(run, mask[0], step)
            if more is None:
                return mask[0]
            self._runs.insert(0, more) if step < 0 else self._runs.append(more)
            run = more
            start, end = self._index.span(run.position, run.position + run.length)
            missing = run.start if step < 0 else len(self._words) - run.start - run.length
        return ""

    def _run_behind(self, run: Run, mask: str, step: int) -> Run | None:
        """The run that goes on behind a mask, forward or back, where some words of the text are missing."""
        ours, theirs, taken = self._words, self._index.words, self._index.taken
        hidden = len(words_of(mask))
        where = run.position - hidden - 1 if step < 0 else run.position + run.length + hidden
        for skipped in range(_MORE_WORDS):
            at = run.start - 1 - skipped if step < 0 else run.start + run.length + skipped
            length = 0
            while 0 <= at < len(ours) and 0 <= where + step * length < len(theirs):
                place = where + step * length
                if ours[at] != theirs[place] or taken[place]:
                    break
                at, length = at + step, length + 1
            if length:
                return Run(at + 1, where - length + 1, length) if step < 0 else Run(at - length, where, length)
        return None

    def written(self) -> tuple[str, Span]:
        """The text, and where it stands."""
        own_spans = spans_of(self._text)
        pieces, stop = [self.front], 0
        first = self._index.span(self._runs[0].position, self._runs[0].position + 1)[0]
        for number, run in enumerate(self._runs):
            start, end = self._index.span(run.position, run.position + run.length)
            own = own_spans[run.start][0], own_spans[run.start + run.length - 1][1]
            if number:
                before = self._runs[number - 1]
                if before.start + before.length == run.start and before.position + before.length == run.position:
                    pieces.append(self._text[own_spans[run.start - 1][1] : own[0]])
                elif self._stands_for_missing(before, run):
                    pieces.append(unescaped(self._part[stop:start]).replace('\\"', '"'))
                else:
                    pieces.append(_ELISION)
            pieces.append(self._text[slice(*own)])
            stop = end
            if number == len(self._runs) - 1 and not self.back:
                shared = self._shared_end(own[1], end)
                pieces.append(self._text[own[1] : own[1] + shared])
                stop += shared
        while stop < len(self._part) and stop > 0 and self._part[stop].isalnum() and self._part[stop - 1].isalnum():
            stop += 1  # a word that was torn
        return "".join([*pieces, self.back]).strip(), (first - len(self.front), stop + len(self.back))

    def _shared_end(self, own: int, theirs: int) -> int:
        """How much punctuation follows in both texts alike."""
        pairs = zip(self._text[own : own + 8], self._part[theirs : theirs + 8], strict=False)
        shared = itertools.takewhile(
            lambda pair: pair[0] == pair[1] and not (pair[0].isalnum() or pair[0].isspace()), pairs
        )
        return len(list(shared))


def _place_of(wanted: Sequence[str], words: Sequence[str], *, last: bool) -> Span | None:
    """Where words stand in order among others, as near to their end, or beginning, as they can: the first, and how many there are.

    They may also be cut into words in another way.
    """
    whole = "".join(wanted)
    for count in range(1, min(len(words), 2 * len(wanted) + 1) + 1):
        near = words[-count:] if last else words[:count]
        if "".join(near) == whole:
            return (len(words) - count, count) if last else (0, count)
    at = len(words) if last else -1
    places: list[int] = []
    for word in reversed(wanted) if last else wanted:
        steps = range(at - 1, -1, -1) if last else range(at + 1, len(words))
        found = next((place for place in steps if words[place] == word), None)
        if found is None:
            return None
        places.append(found)
        at = found
    low, high = min(places), max(places)
    return (low, len(words) - low) if last else (low, high + 1 - low)


_taken = re.compile(rb"[^\x00]+")


@functools.cache
def _claims(owner: int) -> bytes:
    return bytes([owner, *range(1, 256)])


def _last_at_most(starts: Sequence[int], place: int) -> int:
    from bisect import bisect_right

    return bisect_right(starts, place) - 1
