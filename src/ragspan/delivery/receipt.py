"""What becomes of the scores of one answer, for whoever may only go on when they are written."""

from __future__ import annotations

import math
import os
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
    """Tells it. May be asked from any thread, and as often as one likes: it waits for no I/O.

    In the child of a fork it says `lost`: what is on its way is the parent's.

    Args:
        look: the fate; given how many seconds a span is looked for.
    """

    def __init__(self, look: Callable[[float], Fate]) -> None:
        self._look = look
        self._process = os.getpid()

    def fate(self, *, span_patience: float = math.inf) -> Fate:
        """What has become of them.

        Args:
            span_patience: seconds from the first look to the last for which a score's span was not there, after which the
                score counts as settled. It is tried further; but a span that is sampled out on its way never comes.
        """
        return self._look(span_patience) if os.getpid() == self._process else "lost"


def is_lost(result: Result, reason: str | None) -> bool:
    """Whether a score that has ended so might be written if it was emitted once more."""
    return result == "dropped" and reason not in _WITHOUT_SPAN
