"""What a prompt has of a text that is not there as a whole: its words from the first run to the last, in the text's own spelling.

What stands between two runs is the prompt's: a program masks names and leaves out sentences. So is a mask at an edge.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

from ragspan.matching.normalization import unescaped
from ragspan.matching.prompt_words import EXCERPT, FREE, PromptWords, Run
from ragspan.matching.word_positions import Span, WordPositions

_MORE_WORDS = 12
"""Words that a program may write where it leaves others out."""
_MAX_SKIPPED = 12
_EDGE = 80
_ELISION = " … "

_MASK = r"(?:\[(?!\d+\])[^\[\]\n]{1,60}\]|<[A-Z][A-Z0-9_ ]{0,40}>|\{\{?[^{}\n]{1,40}\}?\}|[*█]{2,60}|X{3,60}|#{3,60})"
_AROUND_MASK = " \t,:;.-"
_ENDS_OF_MASKS = "]>}*█X#"
_mask_before = re.compile(rf"{_MASK}[ \t,:;.\-]{{0,3}}$")
_mask_after = re.compile(rf"[ \t,:;.\-]{{0,3}}{_MASK}")


def aligned(words: Sequence[str], runs: Iterable[Run], prompt: PromptWords) -> tuple[list[Run], bool]:
    """The runs of a text in the prompt's order, and whether all of its words stand there in order.

    Then what is at the ends, and too short for a run, is one.
    """
    ordered = sorted(runs, key=lambda run: run.position)
    first, last = ordered[0], ordered[-1]
    if any(before.start + before.length > after.start for before, after in itertools.pairwise(ordered)):
        return ordered, False
    for before, after in itertools.pairwise(ordered):
        missing = words[before.start + before.length : after.start]
        between = _between(before, after, len(missing), prompt)
        if between is None or not _has_all(prompt.words[slice(*between)], missing):
            return ordered, False
    head, tail = words[: first.start], words[last.start + last.length :]
    start = _reach(head, prompt, first.position, -1)
    end = _reach(tail, prompt, last.position + last.length, 1)
    if start is None or end is None:
        return ordered, False
    if head:
        ordered.insert(0, Run(0, start, first.position - start))
    if tail:
        position = last.position + last.length
        ordered.append(Run(len(words) - len(tail), position, end - position))
    return ordered, True


def _between(before: Run, after: Run, missing: int, prompt: PromptWords) -> tuple[int, int] | None:
    """The prompt's words between two runs, if they may stand for what is missing there."""
    start, end = before.position + before.length, after.position
    is_free = prompt.taken.count(FREE, start, end) + prompt.taken.count(EXCERPT, start, end) == end - start
    return (start, end) if is_free and end - start <= 2 * max(0, missing) + _MORE_WORDS else None


def _has_all(words: Sequence[str], wanted: Sequence[str]) -> bool:
    rest = iter(words)
    return all(word in rest for word in wanted) or "".join(words) == "".join(wanted)


def _reach(words: Sequence[str], prompt: PromptWords, position: int, step: int) -> int | None:
    """How far words reach that stand in order from a place on, or back from it; None if they are not all there.

    They may also be cut into words in another way.
    """
    theirs, taken = prompt.words, prompt.taken
    most = 2 * len(words) + _MORE_WORDS
    around = (
        range(position, min(len(theirs), position + most))
        if step > 0
        else range(position - 1, max(-1, position - 1 - most), -1)
    )
    if not words:
        return position
    near = theirs[around.start : around.stop] if step > 0 else theirs[around.stop + 1 : around.start + 1]
    joined, whole = "", "".join(words)
    if near and (near[0][0] == whole[0] if step > 0 else near[-1][-1] == whole[-1]):  # else they need not be joined
        joined = "".join(near)
    is_cut_otherwise = joined.startswith(whole) if step > 0 else joined.endswith(whole)
    if not is_cut_otherwise and (words[0] not in near or not set(words).issubset(near)):
        return None
    wanted = iter(words if step > 0 else reversed(words))
    word, letters, said = next(wanted, None), len(whole), ""
    for at in around:
        if taken[at] != FREE:
            return None
        if theirs[at] == word:
            word = next(wanted, None)
        said = said + theirs[at] if step > 0 else theirs[at] + said
        if word is None or (len(said) == letters and said == "".join(words)):
            return at + 1 if step > 0 else at
    return None


def take_between(runs: Sequence[Run], prompt: PromptWords) -> None:
    """Take the words between runs that stand for what is missing there: they are not another text's, and not background."""
    for before, after in itertools.pairwise(runs):
        between = _between(before, after, after.start - before.start - before.length, prompt)
        if between is not None:
            prompt.take(between[0], between[1] - between[0], EXCERPT)


class ExcerptWriter:
    """Writes what a part of a prompt has of a text.

    Args:
        text: the text.
        words: its words.
        own: where they are in it.
        part: the text of the prompt's part.
        places: where the words of the part are in it.
        first: the number of its first word among those of all parts.
        prompt: the words of all parts.
    """

    def __init__(
        self,
        text: str,
        words: Sequence[str],
        own: WordPositions,
        part: str,
        positions: WordPositions,
        first: int,
        prompt: PromptWords,
    ) -> None:
        self._text, self._words, self._part = text, words, part
        self._own, self._positions = own, positions
        self._first, self._prompt = first, prompt
        self._known: dict[Run, tuple[Span, Span]] = {}

    def written(self, runs: Sequence[Run]) -> tuple[str, Span]:
        """The text, and where it stands."""
        front, runs, begin = self._front(list(runs))
        runs, back, end = self._back(runs)
        pieces = [front]
        for number, run in enumerate(runs):
            own, theirs = self._spans(run)
            if number:
                pieces.append(self._gap(runs[number - 1], run))
            pieces.append(self._text[slice(*own)])
            if not number and not front:
                begin = theirs[0]
        if not back:
            own, theirs = self._spans(runs[-1])
            length = self._shared_end(own[1], theirs[1])
            pieces.append(self._text[own[1] : own[1] + length])
            end = theirs[1] + length
        return "".join([*pieces, back]).strip(), (begin, end)

    def _spans(self, run: Run) -> tuple[Span, Span]:
        """Where a run stands in the text, and in the part."""
        if run not in self._known:
            position = run.position - self._first
            start, end = self._positions.span(position, position + run.length)
            # Mostly it is the text's beginning as it is, and nobody has to count words there.
            is_head = not run.start and self._text.startswith(self._part[start:end])
            own = (0, end - start) if is_head else self._own.span(run.start, run.start + run.length)
            self._known[run] = own, (start, end)
        return self._known[run]

    def _gap(self, before: Run, after: Run) -> str:
        missing = after.start - before.start - before.length
        between = _between(before, after, missing, self._prompt)
        if between is None:
            return _ELISION
        start, end = self._spans(before)[1][1], self._spans(after)[1][0]
        if not missing and between[0] == between[1]:
            return self._text[self._spans(before)[0][1] : self._spans(after)[0][0]]
        return unescaped(self._part[start:end]).replace('\\"', '"')

    def _shared_end(self, own: int, theirs: int) -> int:
        """How much punctuation follows in both texts alike."""
        length = 0
        for one, other in zip(self._text[own : own + 8], self._part[theirs : theirs + 8], strict=False):
            if one != other or one.isalnum() or one.isspace():
                break
            length += 1
        return length

    def _front(self, runs: list[Run]) -> tuple[str, list[Run], int]:
        """What stands before the first run in brackets, with more runs before that."""
        begin = self._spans(runs[0])[1][0]
        while runs[0].start:
            low = max(0, begin - _EDGE)
            before = self._part[low:begin]
            may_be_one = before.rstrip(_AROUND_MASK)[-1:] in _ENDS_OF_MASKS  # as rarely; to search takes longer
            mask = _mask_before.search(before) if may_be_one else None
            if mask is None:
                break
            position = self._positions.words_in(low + mask.start(), begin)[0] + self._first
            more = self._more(runs[0].start, position, -1)
            if more is None:
                return self._part[low + mask.start() : begin], runs, low + mask.start()
            runs.insert(0, more)
            begin = self._spans(more)[1][0]
        return "", runs, begin

    def _back(self, runs: list[Run]) -> tuple[list[Run], str, int]:
        end = self._spans(runs[-1])[1][1]
        while runs[-1].start + runs[-1].length < len(self._words):
            mask = _mask_after.match(self._part[end : end + _EDGE])
            if mask is None:
                break
            position = self._positions.words_in(end, end + mask.end())[1] + self._first
            more = self._more(runs[-1].start + runs[-1].length, position, 1)
            if more is None:
                return runs, mask[0], end + mask.end()
            runs.append(more)
            end = self._spans(more)[1][1]
        return runs, "", end

    def _more(self, start: int, position: int, step: int) -> Run | None:
        """The run that goes on behind a mask, forward or back, where some words of the text are missing."""
        ours, theirs, taken = self._words, self._prompt.words, self._prompt.taken
        for skipped in range(_MAX_SKIPPED):
            at = start + step * skipped - (step < 0)
            where, length = position - (step < 0), 0
            while 0 <= at < len(ours) and ours[at] == theirs[where] and taken[where] == FREE:
                at, where, length = at + step, where + step, length + 1
            if length:
                return Run(at + 1, where + 1, length) if step < 0 else Run(at - length, where - length, length)
        return None
