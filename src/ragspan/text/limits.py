"""How long texts may be that share a room, such as a prompt."""

from __future__ import annotations

from collections.abc import Sequence


def fair_limit(lengths: Sequence[int], room: int) -> int:
    """The length to cut texts to, so that all together take at most `room`.

    Shorter texts stay whole; the result is `room` if all texts do.
    """
    left = room
    for place, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - place)
        if length > share:
            return share
        left -= length
    return room
