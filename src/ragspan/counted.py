"""A number with what it counts, in words: `1 trace`, `1,200 traces`."""

from __future__ import annotations


def counted(number: int, one: str, more: str | None = None) -> str:
    """So many of something.

    Args:
        number: how many.
        one: what one of them is called.
        more: what several are; `one` with an s if it is left out.
    """
    return f"{number:,} {one if number == 1 else more or f'{one}s'}"
