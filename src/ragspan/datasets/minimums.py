"""What the mean of a metric should be at least."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ragspan.config import METRIC_NAMES
from ragspan.datasets.results import Evaluation, MetricSummary
from ragspan.exceptions import ConfigurationError
from ragspan.metrics.named import require_known


def parse_minimums(texts: Iterable[str]) -> dict[str, float]:
    """The minimum by metric, from texts such as `faithfulness=0.8`.

    Raises:
        ConfigurationError: a text is none of these.
    """
    minimums = {}
    for text in texts:
        metric, equals, value = map(str.strip, text.partition("="))
        try:
            minimums[metric] = float(value)
        except ValueError:
            equals = ""
        if not equals or not metric:
            raise ConfigurationError(
                f"--fail-under is {text!r}, but should be a metric and a mean, such as faithfulness=0.8"
            )
    return minimums


def require_minimums(minimums: Mapping[str, float], metrics: Sequence[str] = METRIC_NAMES) -> None:
    """Raise unless each is about one of these metrics, and can be reached.

    Raises:
        ConfigurationError: one is not.
    """
    for metric, minimum in minimums.items():
        require_known(metric, metrics)
        if not 0 <= minimum <= 1:
            raise ConfigurationError(f"the minimum of {metric} is {minimum:g}, but should be a number from 0 to 1")


def shortfalls(evaluation: Evaluation, minimums: Mapping[str, float], *, allow_skipped: bool = True) -> dict[str, str]:
    """By metric, what is wrong with those whose mean is below its minimum. Nothing scored counts as below.

    Args:
        evaluation: with a summary of each of the metrics.
        minimums: by metric.
        allow_skipped: let a mean count though rows that should be in it were skipped.
    """
    judged = {}
    for metric, minimum in minimums.items():
        summary = evaluation.summary[metric]
        skipped = 0 if allow_skipped else summary.skipped + evaluation.bad_row_count
        judged[metric] = _shortfall(summary, minimum) or (_gap(summary, skipped) if skipped else None)
    return {metric: told for metric, told in judged.items() if told is not None}


def _gap(summary: MetricSummary, skipped: int) -> str:
    return (
        f"{summary.metric} has a mean of {summary.mean:.4g} over {summary.scored:,} scored rows, but {skipped:,} more had to"
        " be skipped: complete them, or accept this with --allow-skipped"
    )


def _shortfall(summary: MetricSummary, minimum: float) -> str | None:
    if summary.mean is None:
        reasons = ", ".join(f"{reason} {count}" for reason, count in summary.not_scored.items()) or "there are no rows"
        return f"{summary.metric} should have a mean of at least {minimum:g}, but nothing was scored: {reasons}"
    if summary.mean < minimum:
        return (
            f"{summary.metric} should have a mean of at least {minimum:g}, but has {summary.mean:.4g}"
            f" over {summary.scored} scored rows"
        )
    return None
