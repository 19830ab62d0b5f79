"""Fits passages into the room that a prompt has for them.

The rule: a text that is longer than its share is cut to its first characters. The room is shared equally, and what
short texts leave of their shares goes to the long ones. So every passage keeps its place and its number, short ones
stay whole, and no long one crowds out the others.
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
