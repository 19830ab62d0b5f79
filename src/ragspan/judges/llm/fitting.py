"""Fits passages into the room that a prompt has for them.

The rule: a text that is longer than its share is cut to its first characters. The room is shared equally, and what
short texts leave of their shares goes to the long ones. So every passage keeps its place and its number, short ones
stay whole, and no long one crowds out the others. Only of passages so many that not all of them fit even when cut to a few
words, the last are left out.
"""

from __future__ import annotations

from collections.abc import Sequence


def fair_limit(lengths: Sequence[int], room: int) -> int:
    """The length to cut texts to, so that all together take at most `room`.

    Texts that are not longer than that stay whole; the result is `room` when all do.
    """
    left = room
    for place, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - place)
        if length > share:
            return share
        left -= length
    return room


def fit(lengths: Sequence[int], overheads: Sequence[int], room: int) -> tuple[int, int]:
    """How many of the passages are kept, the first ones and at least one, and the length to cut them to.

    Args:
        lengths: of all passages.
        overheads: what each takes beside its text.
        room: what they may take together.
    """
    if sum(lengths) + sum(overheads) <= room:
        return len(lengths), room
    kept, left, least = 0, room, room
    for length, overhead in zip(lengths, overheads, strict=True):
        least -= overhead + _CUT + min(length, _FEW_WORDS)
        if kept and least < 0:
            break
        kept += 1
        left -= overhead + _CUT
    return kept, fair_limit(lengths[:kept], max(left, 0))


_CUT = 80
"""Characters by which the labels of a passage grow that is cut."""
_FEW_WORDS = 100
