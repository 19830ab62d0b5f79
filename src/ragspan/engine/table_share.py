"""Which rows of a table a judge is asked about, where it is asked about a share of them only.

A table is whole, so the most doubtful rows are known exactly, where an engine's threshold follows the answers as they come. All
else is as there: see `ragspan.engine.asking`. The judge is asked about as many of the rows that can be doubted as the share says,
to one. The rows of the random part are drawn by their ids from those that do not count as doubtful, whatever their doubts are.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Final

from ragspan.engine.asking import DRAW
from ragspan.engine.metric_judges import screens_of
from ragspan.engine.options import check_share
from ragspan.engine.sampling import draw
from ragspan.judge_share import JudgeShare
from ragspan.metrics.metric import Metric
from ragspan.outcomes import Asked, Outcome, Score

_AMONG_EQUALS: Final = b"ragspan.share.equals"


class TableShare:
    """The doubts of a table's rows, and what follows from them. It holds some tens of bytes a row.

    Args:
        share: of the rows.
        metrics: of the evaluation.

    Raises:
        ConfigurationError: the metrics ask no judge but the embedded one, or none of those that do says what is doubtful.
    """

    def __init__(self, share: JudgeShare, metrics: Sequence[Metric]) -> None:
        check_share(metrics)
        self.share = share
        screens = screens_of(metrics)
        self.metrics = frozenset(screens)
        """Names of those whose judge is asked about a share."""
        self.screens: Sequence[Metric] = list(filter(None, screens.values()))
        """These metrics as the embedded judge scores them."""
        self._doubts = array("d")
        """Of the rows, in their order; NaN where none of `DOUBTED` applies."""
        self._draws = array("d")
        self._ties = array("d")

    @property
    def rows(self) -> int:
        return len(self._doubts)

    def add(self, identity: str, doubt: float | None) -> None:
        """Add one row.

        Args:
            identity: its id, by which the random part is drawn.
            doubt: 0 to 1, or None.
        """
        self._doubts.append(math.nan if doubt is None else doubt)
        self._draws.append(draw(identity, DRAW))
        self._ties.append(draw(f"{identity} {self.rows}", _AMONG_EQUALS))

    def is_replaced(self, metric: str, outcome: Outcome, asked: Asked | None) -> bool:
        """Whether the embedded judge's score stands in for that of the judge, which failed, or which the budget denied."""
        is_asked = asked is not None and metric in self.metrics
        return is_asked and isinstance(outcome, Score) and outcome.fallback is not None

    def asked(self) -> list[Asked | None]:
        """Why the judge is asked about each row, in their order; None where it is not."""
        share = self.share
        found: list[Asked | None] = [None] * self.rows
        doubted = [row for row, doubt in enumerate(self._doubts) if not math.isnan(doubt)]
        doubted.sort(key=lambda row: (-self._doubts[row], self._ties[row]))
        total = math.floor(share.total * len(doubted) + 0.5)
        doubtful = min(math.floor(share.doubtful * len(doubted) + 0.5), total)
        for row in doubted[:doubtful]:
            found[row] = "doubtful"
        rest = sorted(doubted[doubtful:], key=lambda row: (self._draws[row], self._ties[row]))
        for row in rest[: total - doubtful]:
            found[row] = "random"
        for row, doubt in enumerate(self._doubts):
            if math.isnan(doubt) and self._draws[row] < share.random:
                found[row] = "random"
        return found
