"""Scores beside the spans: a log event an outcome, and a histogram.

The logs modules of OpenTelemetry are still private and change; all use of them for events is here and in `providers`.
"""

from __future__ import annotations

import time

from opentelemetry.context import Context

from ragspan.outcomes import MetricFailure, Score, ScoredRecord
from ragspan.telemetry import semconv
from ragspan.telemetry.options import EmitterOptions
from ragspan.telemetry.providers import Providers
from ragspan.telemetry.score_attributes import evaluation_result, response_id
from ragspan.telemetry.values import encodable, named


def signal_outcomes(providers: Providers, scored: ScoredRecord, context: Context, options: EmitterOptions) -> None:
    """Send events and measurements that point at the span in `context`, for exemplars and for the reader of a log."""
    _send_events(providers, scored, context, options)
    _record_scores(providers, scored, context)


def _send_events(providers: Providers, scored: ScoredRecord, context: Context, options: EmitterOptions) -> None:
    logger = providers.event_logger()
    if logger is None:
        return
    for metric, outcome in scored.outcomes.items():
        if isinstance(outcome, (Score, MetricFailure)):
            logger.emit(
                timestamp=time.time_ns(),
                context=context,
                event_name=semconv.EVENT_GEN_AI_EVALUATION_RESULT,
                attributes=encodable(
                    {
                        **evaluation_result(metric, outcome, options, "events"),
                        semconv.RECORD_ID: scored.record.record_id,
                        semconv.GEN_AI_RESPONSE_ID: response_id(scored.record),
                        semconv.LOG_RECORD_UID: _uid(scored, metric, outcome),
                    }
                ),
            )


def _uid(scored: ScoredRecord, metric: str, outcome: Score | MetricFailure) -> str:
    """The same whenever this record is scored by this judge: a worker of a fleet may score a record a second time."""
    judge = outcome.judge if isinstance(outcome, Score) else None
    return "/".join([scored.record.record_id, metric, *([judge] if judge else [])])


def _record_scores(providers: Providers, scored: ScoredRecord, context: Context) -> None:
    histogram = providers.score_histogram()
    for metric, outcome in scored.outcomes.items():
        if isinstance(outcome, Score):
            attributes = {
                semconv.GEN_AI_EVALUATION_NAME: named(metric),
                semconv.GEN_AI_EVALUATION_SCORE_LABEL: outcome.label,
                semconv.JUDGE: outcome.judge and named(outcome.judge),
            }
            histogram.record(float(outcome.value), encodable(attributes), context)
