"""Which texts are in which parts of prompts, and which parts hold what a model said.

Programs rarely put a passage into a prompt as it is. They number and indent it, dump it as JSON, escape it, cut it off, or
take sentences out of it. So a text is looked for as it is first, then by its words, and then as an excerpt: by runs of
words that the prompt has in the text's own order. A place in the prompt counts for one text only, the one that covers
most of it: a short passage inside a longer one, or a heading that several share, proves nothing.
"""

from __future__ import annotations

import heapq
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ragspan.matching.normalization import MAX_COST, unescaped, words_of
from ragspan.matching.prompt_words import APART, EXCERPT, FOUND, FREE, SILENT, PromptWords, Run

_MIN_APART = 24
_MIN_HEAD = 24
"""Characters of a text's beginning that make an excerpt."""
_MIN_WORDS = 8
"""Words in runs that make an excerpt."""
_MIN_SAID = 5
_MOST = 0.8
_NEARLY_ALL = 0.9
_MAX_TRIES = 3
_MAX_SAID = 100_000
_MAX_LINE = 2000
_MAX_LINES = 5000
_MIN_SENTENCE = 3
_SHORT = 20
"""Texts below this length must stand between word boundaries."""
_HEAD = 64
_WINDOW = 500_000
"""Characters that are searched at once: other threads wait no longer than for one window."""
_MAX_TRIED = 20
_MAX_COMPARED = 10_000_000
"""Characters of other texts that are searched for all texts together."""

_list_mark = re.compile(r"^\s*(?:[-*•>]|\d+[.):])\s+")
_sentence_end = re.compile(r"(?<=[.!?。！？])\s*")  # noqa: RUF001  Chinese and Japanese sentences end in these


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """A text found in a prompt."""

    start: int
    """Where it begins; to be compared with other matches in the same prompt only."""
    whole: bool
    """Nothing of the text is missing."""
    part: int = 0
    """The number of the prompt's part that has it."""


@dataclass(kw_only=True, slots=True)
class Held:
    """The parts of prompts that hold what a model said, by their numbers."""

    words: Sequence[str]
    """What was said, as it is compared."""
    free: set[int] = field(default_factory=set)
    """Those that hold it, whole or a run of it, outside of the texts that were found."""
    in_found: set[int] = field(default_factory=set)
    """Those that hold it inside a text that was found."""
    as_line: set[int] = field(default_factory=set)
    """Those that have it as a line or field of its own, outside of the texts that were found."""


@dataclass(kw_only=True, slots=True, eq=False)
class _Spelled:
    """Texts that are looked for and have the same words."""

    number: int
    words: list[str]
    is_cut: bool
    """There are more words, too many to look at."""
    texts: list[str] = field(default_factory=list)
    found: dict[int, tuple[int, bool]] = field(default_factory=dict)
    """By the number of a part, where the text begins in it, and whether it is whole."""


class _Excerpt(NamedTuple):
    """What stands of a text in a part of a prompt; the largest comes first, and of equal ones the first that is no copy."""

    size: int
    """Below 0: the number of words."""
    tries: int
    number: int
    part: int
    text: _Spelled
    runs: list[Run]
    is_copy: bool = False


class PromptText:
    """A prompt that texts are looked for in.

    Args:
        text: the prompt.
        apart: a text in it that holds no passages, even if it quotes some: the user's own words.
    """

    def __init__(self, text: str, *, apart: str = "") -> None:
        self._text = text
        self._apart = apart
        self.is_complete = True
        """False when what was not found may be there all the same: to look further would take too long."""

    def find(self, texts: Sequence[str], *, excerpts: bool = True) -> list[Match | None]:
        """Where each text stands in the prompt, whole or, with `excerpts`, in part; equal texts share a place."""
        starts = self._all_in_order([text for text in texts if text.strip()])
        if starts is not None:
            return [Match(start=starts[text], whole=True) if text.strip() else None for text in texts]
        prompt = PromptTexts([self._text], apart=self._apart)
        found = prompt.find(texts, excerpts=excerpts)
        self.is_complete = prompt.is_complete
        return [matches[0] if matches else None for matches in found]

    def _all_in_order(self, texts: Sequence[str]) -> dict[str, int] | None:
        """The places of the texts if all are in the prompt as they are, in the same order; this is mostly so."""
        if len(self._apart) * len(texts) > _MAX_COMPARED or any(text in self._apart for text in texts):
            return None
        starts: dict[str, int] = {}
        end = 0
        for text in texts:
            start = self._place_of(text, end)
            if start is None:
                return None
            starts.setdefault(text, start)
            end = start + len(text)
        return None if _hold_one_another(texts) else starts

    def _place_of(self, text: str, start: int) -> int | None:
        """The first place of a text at or after `start`; None also where too many others begin alike."""
        head = text[:_HEAD]
        for _ in range(_MAX_TRIED):
            place = _find(self._text, head, start)
            if place < 0:
                return None
            if self._text.startswith(text, place) and not (len(text) < _SHORT and self._cuts_words(place, text)):
                return place
            start = place + 1
        return None

    def _cuts_words(self, start: int, needle: str) -> bool:
        text, end = self._text, start + len(needle)
        before = start > 0 and text[start - 1].isalnum() and text[start].isalnum()
        after = end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
        return before or after


class PromptTexts:
    """The parts of prompts, which texts are looked for in; a part that several prompts share is looked at once.

    Args:
        parts: the texts of the parts, each once, the most important first.
        apart: a text that holds no documents wherever it stands, even if it quotes some: the user's own words.
        silent: the numbers of parts that hold no documents: the model's own words.
    """

    def __init__(self, parts: Sequence[str], *, apart: str = "", silent: Iterable[int] = ()) -> None:
        self._parts = parts
        self._cut = False
        self._prompt = PromptWords(self._words_of_parts(), silent=silent)
        self._apart = words_of(apart, MAX_COST // 10)[0] if len(apart) >= _MIN_APART else []
        self._unknown = False
        self._lines: dict[int, set[str]] = {}

    def _words_of_parts(self) -> Iterable[Sequence[str]]:
        left = MAX_COST
        for part in self._parts:
            words, left = words_of(part, max(0, left))
            self._cut = self._cut or left < 0
            yield words

    @property
    def is_complete(self) -> bool:
        """False when what was not found may be there all the same: to look further would take too long."""
        return not self._unknown and self._prompt.work >= 0

    # Documents

    def find(self, texts: Sequence[str], *, excerpts: bool = True) -> list[list[Match]]:
        """Where each text is, whole or, with `excerpts`, in part: its first place in every part that has it.

        A place counts for one text only, the one that covers most of it. Equal texts share their places.
        """
        spelled = sorted(_spelled(texts), key=lambda own: len(own.words), reverse=True)
        self._find_whole(spelled)
        if excerpts:
            self._find_excerpts(spelled)
        matches: dict[str, list[Match]] = {}
        for own in spelled:
            self._unknown = self._unknown or (not own.found and (self._cut or own.is_cut))
            found = [
                Match(start=start, whole=whole and not own.is_cut, part=part)
                for part, (start, whole) in sorted(own.found.items())
            ]
            matches |= dict.fromkeys(self._likeliest(own.texts), found)
        return [matches.get(text, []) for text in texts]

    def _likeliest(self, texts: list[str]) -> list[str]:
        """Of texts that differ in case and punctuation only, those that are there as they are."""
        if len(texts) == 1:
            return texts
        return [text for text in texts if any(text in part for part in self._parts)] or texts

    def _find_whole(self, texts: Sequence[_Spelled]) -> None:
        """Take all places of all texts, which come in order of their length, the longest first.

        `apart` takes its places before anything shorter does: what stands in it is a quotation. A text that is longer
        may hold it.
        """
        prompt, apart = self._prompt, self._apart
        *places, of_apart = prompt.places_of([*(own.words for own in texts), apart])
        is_placed = False
        for own, its_places in zip(texts, places, strict=True):
            if not is_placed and len(own.words) < len(apart):
                is_placed = True
                self._take_all(of_apart, len(apart), APART)
            for place in self._take_all(its_places, len(own.words), FOUND):
                own.found.setdefault(prompt.part_of(place), (place, True))
        if not is_placed:
            self._take_all(of_apart, len(apart), APART)

    def _take_all(self, places: Iterable[int], length: int, owner: int) -> list[int]:
        taken: list[int] = []
        for place in places:
            if not self._prompt.is_taken(place, length, FREE):
                self._prompt.take(place, length, owner)
                taken.append(place)
        return taken

    def _find_excerpts(self, texts: Sequence[_Spelled]) -> None:
        """Take the places of excerpts, that of which most is there first: what it takes is no other's any more."""
        recurring = self._prompt.recurring() if any(own.found for own in texts) else []
        waiting: list[_Excerpt] = []
        for own in texts:
            starts = [start for start, _ in own.found.values()]
            if not starts or recurring is None or any(_is_among(recurring, start, len(own.words)) for start in starts):
                waiting += self._excerpts(own)
        heapq.heapify(waiting)
        while waiting:
            excerpt = heapq.heappop(waiting)
            free = [run for run in excerpt.runs if not self._prompt.is_taken(run.place, run.length, FREE)]
            if len(free) == len(excerpt.runs) or excerpt.is_copy:
                self._take_excerpt(excerpt, free)
                for copies in [] if excerpt.is_copy else self._copies(excerpt):
                    heapq.heappush(waiting, copies)
            elif excerpt.tries < _MAX_TRIES:
                for smaller in self._excerpts(excerpt.text, excerpt.part, excerpt.tries + 1):
                    heapq.heappush(waiting, smaller)

    def _excerpts(self, text: _Spelled, part: int | None = None, tries: int = 0) -> Iterator[_Excerpt]:
        """What stands of a text in each part, or in one, where it is not whole and that is enough to prove anything."""
        for number, runs in self._prompt.runs(text.words, FREE, part).items():
            size = _size_of_excerpt(text.words, runs)
            if size and not text.found.get(number, (0, False))[1]:
                yield _Excerpt(-size, tries, text.number, number, text, runs)

    def _take_excerpt(self, excerpt: _Excerpt, free: Iterable[Run]) -> None:
        for run in free:
            self._prompt.take(run.place, run.length, EXCERPT)
        text = excerpt.text
        text.found.setdefault(excerpt.part, (excerpt.runs[0].place, -excerpt.size >= _NEARLY_ALL * len(text.words)))

    def _copies(self, excerpt: _Excerpt) -> Iterator[_Excerpt]:
        """The same words at other places, which prove nothing of another text; but one that has as many goes first."""
        start, taken, length = excerpt.runs[0]
        places = self._prompt.places_of_copies(taken, length)
        if places:
            runs = [Run(start, place, length) for place in places]
            yield excerpt._replace(tries=_MAX_TRIES, runs=runs, is_copy=True)

    # Words of models

    def held(self, said: Sequence[str]) -> list[Held]:
        """Which parts hold each of the texts that models said, whole, a sentence of it, or a run of its words.

        One word stands anywhere, so it takes two, or a line with nothing else. What looks like an excerpt of a text, and is
        no more than what a model said, are its own words.
        """
        most = MAX_COST // 3 // max(1, len(said))
        spelled = [words_of(text, most) for text in said]
        held = [Held(words=words) for words, _ in spelled]
        self._add_holders(held)
        sentences: list[Held] = []
        speakers: list[Held] = []
        for own, text in zip(held, said, strict=True):
            parts = _sentence_end.split(text[:most])
            words = [words_of(part)[0] for part in parts] if len(parts) > 1 else []
            sentences += [Held(words=sentence) for sentence in words if len(sentence) >= _MIN_SENTENCE]
            speakers += [own] * (len(sentences) - len(speakers))
        self._add_holders(sentences)
        for sentence, own in zip(sentences, speakers, strict=True):
            own.free |= sentence.free
        self._unknown = self._unknown or any(
            left < 0 and not own.free for own, (_, left) in zip(held, spelled, strict=True)
        )
        return held

    def _add_holders(self, held: Sequence[Held]) -> None:
        prompt = self._prompt
        for own, places in zip(held, prompt.places_of([own.words for own in held]), strict=True):
            words = own.words
            for place in places:
                part = prompt.part_of(place)
                around = (prompt.taken[place - 1], prompt.taken[place + len(words)])
                if not prompt.is_taken(place, len(words), SILENT if EXCERPT in around else EXCERPT):
                    own.free.add(part)
                elif prompt.taken[place] in {EXCERPT, FOUND}:
                    own.in_found.add(part)
            line = " ".join(words)
            own.as_line |= {part for part in own.free if line in self._lines_of(part)}
            if len(words) == 1:
                own.free.clear()
            enough = min(_MIN_WORDS, max(_MIN_SAID, _MOST * len(words)))
            for part, runs in prompt.runs(words, SILENT).items():
                if sum(run.length for run in runs) >= enough:
                    own.free.add(part)

    def _lines_of(self, part: int) -> set[str]:
        """The lines of a part without list marks, the whole, and the fields if it is JSON; short ones only."""
        if part not in self._lines:
            text = unescaped(self._parts[part][:_MAX_SAID])
            if text.lstrip().startswith(("{", "[", "```")):
                text = text.replace('"', "\n")
            lines = [_list_mark.sub("", line) for line in text.splitlines()[:_MAX_LINES] if len(line) <= _MAX_LINE]
            whole = [text] if len(text) <= _MAX_LINE else []
            self._lines[part] = {" ".join(words_of(line)[0]) for line in (*lines, *whole)}
        return self._lines[part]


def _hold_one_another(texts: Sequence[str]) -> bool:
    """Whether a text is inside a longer one, and so may have been found in a copy of that."""
    by_length = sorted(set(texts), key=len)
    if len(texts) * sum(map(len, by_length)) > _MAX_COMPARED:
        return False
    return any(text in longer for at, text in enumerate(by_length) for longer in by_length[at + 1 :])


def _find(text: str, needle: str, start: int) -> int:
    """`text.find(needle, start)` in steps."""
    while start < len(text):
        place = text.find(needle, start, start + _WINDOW + len(needle))
        if place >= 0:
            return place
        start += _WINDOW
    return -1


def _spelled(texts: Iterable[str]) -> Iterable[_Spelled]:
    """The texts by their words; where they are too much, long ones share what is left and are cut off."""
    spelled: dict[str, _Spelled] = {}
    left = MAX_COST
    by_length = sorted(dict.fromkeys(texts), key=len)
    for number, text in enumerate(by_length):
        share = left // (len(by_length) - number)
        words, rest = words_of(text, share)
        left -= share - max(0, rest)
        if words:
            new = _Spelled(number=number, words=words, is_cut=rest < 0)
            spelled.setdefault(" ".join(words), new).texts.append(text)
    return spelled.values()


def _is_among(places: Sequence[int], start: int, length: int) -> bool:
    """Whether one of the places, which are in order, is in this range."""
    at = bisect_left(places, start)
    return at < len(places) and places[at] < start + length


def _size_of_excerpt(words: Sequence[str], runs: Sequence[Run]) -> int:
    """How many words there are of a text, if they are enough to tell that this is an excerpt of it; else 0."""
    size = sum(run.length for run in runs)
    head = next((run.length for run in runs if run.start == 0), 0)
    is_head = sum(len(word) + 1 for word in words[:head]) > _MIN_HEAD
    return size if size >= _MIN_WORDS or is_head else 0
