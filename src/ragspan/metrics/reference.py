"""A second opinion on some of the answers, by a judge that is trusted more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ragspan.judges.base import Judge
from ragspan.metrics.base import JudgedMetric
from ragspan.outcomes import Outcome
from ragspan.records import RagRecord

REFERENCE: Final = "_reference"
"""The end of the name of a metric whose labels are the standard for the metric of the name before it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """Scores as another metric does, by a judge of its own, under the name `METRIC_reference`.

    Give it a small share of the answers (`metric_sample_rates`). Where both have judged an answer, the counter `ragspan.labels`
    counts it by both labels, and the true rate of failures follows from that (`ragspan.metrics.rates`). With a language model as
    reference it is the rate by that model's standard.

    Args:
        kind: the class of the metric, such as `ContextAdherence`.
        judge: of the reference.

    Raises:
        ConfigurationError: the judge cannot answer what the metric asks.
    """

    kind: Callable[[Judge], JudgedMetric[Any]]
    judge: Judge

    def __post_init__(self) -> None:
        self.kind(self.judge)

    @property
    def name(self) -> str:
        return f"{self.kind(self.judge).name}{REFERENCE}"

    async def score(self, record: RagRecord) -> Outcome:
        return await self.kind(self.judge).score(record)
