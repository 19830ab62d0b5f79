"""A number with what it counts."""

from __future__ import annotations


def counted(number: int, one: str, more: str | None = None, *, grouped: bool = False) -> str:
    """`1 trace`, `1200 traces`, or grouped `1,200 traces`; `more` is what several are called, if not `one` with an s."""
    return f"{f'{number:,}' if grouped else number} {one if number == 1 else more or f'{one}s'}"
