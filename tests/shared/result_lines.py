"""The rows of an evaluation or a file, as a line for each row and metric."""

from __future__ import annotations

from types import SimpleNamespace

from ragspan.evaluate import Evaluation
from ragspan.outcomes import MetricFailure, NotApplicable, Score
from ragspan.usage import Usage


def result_lines(run):
    """Each row and metric of an `Evaluation` or a `ResultFile`."""
    for row in run.all_rows() if isinstance(run, Evaluation) else run.rows():
        for metric, outcome in row.outcomes.items():
            score = outcome if isinstance(outcome, Score) else None
            reason = detail = None
            if isinstance(outcome, NotApplicable):
                reason, detail = outcome.reason, outcome.detail
            elif isinstance(outcome, MetricFailure):
                reason, detail = outcome.error_type, outcome.message
            yield SimpleNamespace(
                row=row.row,
                record_id=row.record.record_id,
                metric=metric,
                score=score and score.value,
                label=score and score.label,
                cause=score and score.cause,
                explanation=score and score.explanation,
                reason=reason,
                detail=score.fallback if score else detail,
                judge=score and score.judge,
                asked=row.asked,
                screen_score=score and score.screen and score.screen.value,
                screen_label=score and score.screen and score.screen.label,
                requests=outcome.usage and outcome.usage.requests,
                usd=(outcome.usage or Usage()).usd,
            )
