"""Texts that are all in prompts as they are. This is mostly so, and found without a look at the words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from ragspan.matching.needles import Needles
from ragspan.matching.normalization import slices, words_of
from ragspan.matching.prompt_words import PromptWords
from ragspan.matching.word_positions import Span

_SHORT = 20
"""Texts below this length must stand between word boundaries."""
_HEAD = 64
_WINDOW = 500_000
"""Characters that are searched at once: other threads wait no longer than for one window."""
_MAX_TRIED = 20
_MAX_COMPARED = 10_000_000
"""Characters of other texts that are searched for all texts together."""
_FEW_WORDS = 6
"""Too few for a run of words."""
MIN_APART = 24
"""Characters of the user's words, which are then no document wherever they stand."""
_AT_ONCE = 50_000
_MAX_SEARCHED = 5_000_000
"""Characters of prompts that texts are looked for in in any order."""

Holding = Mapping[str, Mapping[int, Sequence[int]]]
"""By a text, and by the number of a part, where it begins there; of blank texts there are none."""


def held_in_order(texts: Sequence[str], parts: Sequence[str], order: Sequence[int], apart: str) -> Holding | None:
    """Where all of these texts are, if they stand in these parts in the same order; None if a closer look is needed."""
    wanted = _wanted(texts, apart)
    held: dict[str, dict[int, list[int]]] = {}
    at, end = 0, 0
    for text in wanted or ():
        start = None
        while at < len(order) and (start := _position_of(text, parts[order[at]], end)) is None:
            at, end = at + 1, 0
        if start is None:
            return None
        held.setdefault(text, {order[at]: [start]})
        end = start + len(text)
    if wanted is None or _hold_one_another(wanted):
        return None
    for text, own in held.items():
        for part, starts in own.items():
            if len(parts[part]) * len(texts) <= _MAX_COMPARED:  # if it is not too much to look for copies
                starts += [start for start in occurrences(parts[part], text) if start != starts[0]]
    return held


def held_in_any_order(texts: Sequence[str], parts: Mapping[int, str], apart: str) -> Holding | None:
    """Where all of these texts are; None if a closer look is needed: one is not there, or more of it in another spelling.

    Args:
        texts: what is looked for.
        parts: what they are looked for in, by number.
        apart: the user's own words.
    """
    wanted = _wanted(texts, apart)
    if not wanted or sum(map(len, parts.values())) > _MAX_SEARCHED:
        return None
    needles = Needles(wanted)
    held: dict[str, dict[int, list[int]]] = {text: {} for text in needles.texts}
    rest: dict[str, None] = {}
    for number, part in parts.items():
        places = sorted(place for place in needles.places_in(part) if not cuts_words(part, *place))
        if any(start + len(text) > after for (start, text), (after, _) in pairwise(places)):
            return None
        at = 0
        for start, text in places:
            held[text].setdefault(number, []).append(start)
            rest[part[at:start]] = None
            at = start + len(text)
        rest[part[at:]] = None
    if needles.is_exhausted or not all(held.values()):
        return None
    return None if _leave_a_trace(needles.texts, list(rest), apart) else held


def _wanted(texts: Sequence[str], apart: str) -> list[str] | None:
    """The texts that are not blank; None if one of them may be the user's own words."""
    wanted = [text for text in texts if text.strip()]
    return None if len(apart) * len(wanted) > _MAX_COMPARED or any(text in apart for text in wanted) else wanted


def _leave_a_trace(texts: Sequence[str], rest: Sequence[str], apart: str) -> bool:
    """Whether what stands beside texts may have words of theirs in a row."""
    pieces = [some for piece in rest for some in (piece.split(apart) if len(apart) >= MIN_APART else [piece])]
    prompt = PromptWords(words for piece in pieces if (words := words_of(piece)[0]))
    short = [text for text in texts if len(text.split(None, _FEW_WORDS)) <= _FEW_WORDS] if prompt.words else ()
    if any(prompt.positions_of([words_of(text)[0] for text in short])):
        return True
    return prompt.has_runs and any(prompt.shares(words_of(some)[0]) for some in slices("\n".join(texts), _AT_ONCE))


def spans_of(held: Holding) -> dict[int, list[Span]]:
    """By part, where it has these texts."""
    spans: dict[int, list[Span]] = {}
    for text, own in held.items():
        for part, starts in own.items():
            spans.setdefault(part, []).extend((start, start + len(text)) for start in starts)
    return spans


def occurrences(text: str, needle: str, *, most: int = 1000) -> Iterator[int]:
    """Where a text stands in another one as it is, and between word boundaries if it is short."""
    start = 0
    for _ in range(most if needle else 0):
        start = _find(text, needle, start)
        if start < 0:
            return
        if len(needle) >= _SHORT or not cuts_words(text, start, needle):
            yield start
        start += len(needle)


def _position_of(text: str, prompt: str, start: int) -> int | None:
    """The first place of a text at or after `start`; None also where too many others begin alike."""
    head = text[:_HEAD]
    for _ in range(_MAX_TRIED):
        position = _find(prompt, head, start)
        if position < 0:
            return None
        if prompt.startswith(text, position) and not (len(text) < _SHORT and cuts_words(prompt, position, text)):
            return position
        start = position + 1
    return None


def cuts_words(text: str, start: int, needle: str) -> bool:
    """Whether a text that stands in another one begins or ends within a word there."""
    end = start + len(needle)
    before = start > 0 and text[start - 1].isalnum() and text[start].isalnum()
    after = end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
    return before or after


def _hold_one_another(texts: Sequence[str]) -> bool:
    """Whether a text is inside a longer one, and so may have been found in a copy of that."""
    by_length = sorted(set(texts), key=len)
    if len(texts) * sum(map(len, by_length)) > _MAX_COMPARED:
        return False
    return any(text in longer for at, text in enumerate(by_length) for longer in by_length[at + 1 :])


def _find(text: str, needle: str, start: int) -> int:
    """`text.find(needle, start)` in steps."""
    while start < len(text):
        position = text.find(needle, start, start + _WINDOW + len(needle))
        if position >= 0:
            return position
        start += _WINDOW
    return -1
