"""People's labels of responses."""

from __future__ import annotations

from typing import Final

GOOD: Final = frozenset(
    ["1", "true", "yes", "y", "pass", "passed", "good", "correct", "supported", "grounded", "faithful"]
)
BAD: Final = frozenset(
    [
        "0",
        "false",
        "no",
        "n",
        "fail",
        "failed",
        "bad",
        "incorrect",
        "wrong",
        "unsupported",
        "ungrounded",
        "hallucinated",
    ]
)
_SHOWN: Final = 60  # characters


def label_of(cell: object) -> bool:
    """Whether the label says that a response is good.

    Raises:
        ValueError: it is not a label; the message continues "row 3 ".
    """
    word = str(cell).strip().lower().removesuffix(".0")
    if word in GOOD or word in BAD:
        return word in GOOD
    raise ValueError(
        f"has the label {str(cell)[:_SHOWN]!r}, but should have one of {', '.join(sorted(GOOD))} for a good response,"
        f" one of {', '.join(sorted(BAD))} for a bad one"
    )
