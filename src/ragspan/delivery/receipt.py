"""What becomes of the scores of one answer, for whoever may only go on when they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from ragspan.delivery.stats import Result

Fate: TypeAlias = Literal["waiting", "settled", "lost"]
"""Of all scores of an answer together.

`waiting`: one of them is on its way. `settled`: each is delivered, or refused for good, or there is no span to write it to.
`lost`: one was given up although a second emission might bring it there.
"""

_WITHOUT_SPAN = frozenset({"no_span", "span_not_found"})
"""Why a score is given up that could not be written by a second emission either: nobody keeps the span of its answer."""


class Receipt:
    """Tells it. May be asked from any thread, and as often as one likes: it waits for nothing.

    Args:
        look: the fate; given whether scores are waited for whose span the backend has not got.
    """

    def __init__(self, look: Callable[[bool], Fate]) -> None:
        self._look = look

    def fate(self, *, waits_for_spans: bool = True) -> Fate:
        """What has become of them.

        Args:
            waits_for_spans: False counts a score as settled whose span the backend did not have when it was last tried. It
                is tried further; but a span that is sampled out on its way never comes.
        """
        return self._look(waits_for_spans)


def is_lost(result: Result, reason: str | None) -> bool:
    """Whether a score that has ended so might be written if it was emitted once more."""
    return result == "dropped" and reason not in _WITHOUT_SPAN
