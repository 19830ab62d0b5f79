"""What the mean of a metric should be at least: for `--fail-under`, and for `assert_scores` in tests."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ragspan.config import METRIC_NAMES
from ragspan.datasets.evaluation import evaluate
from ragspan.datasets.results import EvaluatedRow, Evaluation, MetricSummary
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.judges.base import Judge
from ragspan.metrics.named import require_known
from ragspan.outcomes import Score

_ROWS_SHOWN = 3
_TEXT_SHOWN = 300  # characters


def parse_minimums(texts: Iterable[str]) -> dict[str, float]:
    """The minimum by metric, from texts such as `faithfulness=0.8`.

    Raises:
        ConfigurationError: a text is none of these.
    """
    minimums = {}
    for text in texts:
        metric, _, value = map(str.strip, text.partition("="))
        try:
            minimums[metric] = float(value if metric else "")
        except ValueError:
            raise ConfigurationError(
                f"--fail-under is {text!r}, but should be a metric and a mean, such as faithfulness=0.8"
            ) from None
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
    found = {}
    for metric, minimum in minimums.items():
        summary = evaluation.summary[metric]
        skipped = 0 if allow_skipped else summary.skipped + evaluation.bad_row_count
        words = _shortfall(summary, minimum, skipped)
        if words is not None:
            found[metric] = words
    return found


def _shortfall(summary: MetricSummary, minimum: float, skipped: int) -> str | None:
    wanted = f"{summary.metric} should have a mean of at least {minimum:g}"
    if summary.mean is None:
        reasons = ", ".join(f"{reason} {count}" for reason, count in summary.not_scored.items()) or "there are no rows"
        return f"{wanted}, but nothing was scored: {reasons}"
    if summary.mean < minimum:
        return f"{wanted}, but has {summary.mean:.4g} over {summary.scored} scored rows"
    if skipped:
        return (
            f"{summary.metric} has a mean of {summary.mean:.4g} over {summary.scored:,} scored rows, but {skipped:,} more"
            " had to be skipped: complete them, or accept this with --allow-skipped"
        )
    return None


def require_scores(records: Any, minimums: Mapping[str, float], judge: Judge | str | None) -> None:
    """Raise unless the mean of each metric reaches its minimum. See `ragspan.testing.assert_scores`."""
    if not minimums:
        raise TypeError("assert_scores needs a metric and the mean it should have, such as faithfulness=0.8")
    require_minimums(minimums)
    evaluation = evaluate(records, list(minimums), judge=judge)
    if evaluation.bad_row_count:
        raise TableError(
            f"{evaluation.bad_row_count} records cannot be evaluated; the first is {evaluation.bad_rows[0]}"
        )
    below = shortfalls(evaluation, minimums)
    if below:
        raise AssertionError("\n".join(_account(evaluation, below)))


def _account(evaluation: Evaluation, below: Mapping[str, str]) -> Iterator[str]:
    for metric, words in below.items():
        yield words
        for evaluated in evaluation.worst_by(metric)[:_ROWS_SHOWN]:
            yield from _of_row(evaluated, metric)


def _of_row(evaluated: EvaluatedRow, metric: str) -> Iterator[str]:
    outcome = evaluated.outcomes[metric]
    if not isinstance(outcome, Score):
        return
    yield f"  row {evaluated.row} ({evaluated.record.record_id}): {outcome.value:.3f}"
    shown = {"question": evaluated.record.question, "response": evaluated.record.response, "why": outcome.explanation}
    for name, text in shown.items():
        if text:
            yield f"    {name}: {textwrap.shorten(text, _TEXT_SHOWN, placeholder=' ...')}"
