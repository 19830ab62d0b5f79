"""A number with what it counts: `1 trace`, `1200 traces`."""

from __future__ import annotations


def counted(number: int, one: str, more: str | None = None, *, grouped: bool = False) -> str:
    """So many of something.

    Args:
        number: how many.
        one: what one of them is called.
        more: what several are; `one` with an s if it is left out.
        grouped: write 1,200 for 1200, for people; programs read lines of logs, too.
    """
    digits = f"{number:,}" if grouped else str(number)
    return f"{digits} {one if number == 1 else more or f'{one}s'}"
