"""Texts that are all in prompts as they are, in the same order. This is mostly so, and found without a look at the words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragspan.matching.word_positions import Span

_SHORT = 20
"""Texts below this length must stand between word boundaries."""
_HEAD = 64
_WINDOW = 500_000
"""Characters that are searched at once: other threads wait no longer than for one window."""
_MAX_TRIED = 20
_MAX_COMPARED = 10_000_000
"""Characters of other texts that are searched for all texts together."""

NOWHERE = (-1, -1)


def literal_positions(
    texts: Sequence[str], parts: Sequence[str], order: Sequence[int], apart: str
) -> list[tuple[int, int]] | None:
    """The number of the part and the first character of each text; `NOWHERE` for blank ones; None if a closer look is needed."""
    wanted = [text for text in texts if text.strip()]
    if len(apart) * len(wanted) > _MAX_COMPARED or any(text in apart for text in wanted):
        return None
    found: dict[str, tuple[int, int]] = {}
    at, end = 0, 0
    for text in wanted:
        start = None
        while at < len(order) and (start := _position_of(text, parts[order[at]], end)) is None:
            at, end = at + 1, 0
        if start is None:
            return None
        found.setdefault(text, (order[at], start))
        end = start + len(text)
    return None if _hold_one_another(wanted) else [found.get(text, NOWHERE) for text in texts]


def spans_of(texts: Sequence[str], positions: Sequence[tuple[int, int]], parts: Sequence[str]) -> dict[int, list[Span]]:
    """By part, where the texts stand that were found, with their copies in the same part if that is not too much to look for."""
    spans: dict[int, list[Span]] = {}
    for text, (part, start) in zip(texts, positions, strict=True):
        if (part, start) != NOWHERE:
            is_little = len(parts[part]) * len(texts) <= _MAX_COMPARED
            starts = [start, *occurrences(parts[part], text)] if is_little else [start]
            spans.setdefault(part, []).extend((at, at + len(text)) for at in starts)
    return spans


def occurrences(text: str, needle: str, *, most: int = 1000) -> Iterator[int]:
    """Where a text stands in another one as it is, and between word boundaries if it is short."""
    start = 0
    for _ in range(most if needle else 0):
        start = _find(text, needle, start)
        if start < 0:
            return
        if len(needle) >= _SHORT or not _cuts_words(text, start, needle):
            yield start
        start += len(needle)


def _position_of(text: str, prompt: str, start: int) -> int | None:
    """The first place of a text at or after `start`; None also where too many others begin alike."""
    head = text[:_HEAD]
    for _ in range(_MAX_TRIED):
        position = _find(prompt, head, start)
        if position < 0:
            return None
        if prompt.startswith(text, position) and not (len(text) < _SHORT and _cuts_words(prompt, position, text)):
            return position
        start = position + 1
    return None


def _cuts_words(text: str, start: int, needle: str) -> bool:
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
