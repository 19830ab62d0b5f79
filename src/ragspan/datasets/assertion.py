"""A test's way to demand scores: passes in silence, or fails with an account of what is wrong."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from ragspan.datasets.evaluation import evaluate
from ragspan.datasets.minimums import require_minimums, shortfalls
from ragspan.datasets.results import EvaluatedRow, Evaluation
from ragspan.exceptions import TableError
from ragspan.judges.base import Judge
from ragspan.outcomes import Score

_WORST_SHOWN = 3
_TEXT_SHOWN = 300  # characters


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
    for metric, told in below.items():
        yield told
        for evaluated in evaluation.worst_by(metric)[:_WORST_SHOWN]:
            yield from _of_record(evaluated, metric)


def _of_record(evaluated: EvaluatedRow, metric: str) -> Iterator[str]:
    outcome = evaluated.outcomes[metric]
    if not isinstance(outcome, Score):
        return
    yield f"  row {evaluated.row} ({evaluated.record.record_id}): {outcome.value:.3f}"
    shown = {"question": evaluated.record.question, "response": evaluated.record.response, "why": outcome.explanation}
    for name, text in shown.items():
        if text:
            yield f"    {name}: {textwrap.shorten(text, _TEXT_SHOWN, placeholder=' ...')}"
