"""How often a metric differs from its reference, over time.

A metric `NAME_reference` judges a random share of the answers that `NAME` judges. The counts of both make the true rate of
failures (`ragspan.metrics.rates`, `docs/grafana`).
"""

from __future__ import annotations

from opentelemetry.metrics import Meter

from ragspan.metrics.reference import REFERENCE
from ragspan.outcomes import Score, ScoredRecord
from ragspan.telemetry import semconv
from ragspan.telemetry.values import encodable, named


class ScoreWatch:
    """Counts the answers that a metric and its reference judged, by the labels of both."""

    def __init__(self, meter: Meter) -> None:
        self._labels = meter.create_counter(
            semconv.METRIC_LABELS,
            unit="{answer}",
            description="Answers that a metric and its reference judged, by the labels of both.",
        )

    def take(self, scored: ScoredRecord) -> None:
        """Take all outcomes of a record."""
        scores = {name: outcome for name, outcome in scored.outcomes.items() if isinstance(outcome, Score)}
        for name in [name for name in scores if name + REFERENCE in scores]:
            self._compare(name, scores[name], scores[name + REFERENCE])

    def _compare(self, name: str, score: Score, reference: Score) -> None:
        if score.label and reference.label and reference.fallback is None:
            labels = {semconv.GEN_AI_EVALUATION_SCORE_LABEL: score.label, semconv.REFERENCE_LABEL: reference.label}
            self._labels.add(1, encodable({semconv.GEN_AI_EVALUATION_NAME: named(name), **labels}))
