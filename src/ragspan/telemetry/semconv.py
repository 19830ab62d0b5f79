"""The names on telemetry that several modules write, or dashboards read; all others stand where they are written.

`docs/attributes.md` says what each name means. The `gen_ai.*` names are still in development and have moved before.
"""

from __future__ import annotations

from typing import Final

SCOPE: Final = "ragspan"
"""Name of the instrumentation scope of all spans, events and metrics."""
SCHEMA_URL: Final = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"
"""The only one of the conventions for generative AI since they left the general ones in version 1.42.0."""

GEN_AI_EVALUATION_NAME: Final = "gen_ai.evaluation.name"
GEN_AI_EVALUATION_SCORE_LABEL: Final = "gen_ai.evaluation.score.label"
GEN_AI_TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105 - of a language model
RECORD_ID: Final = "ragspan.record_id"
CONTEXTS_COUNT: Final = "ragspan.contexts.count"
DELIVERY_COUNT: Final = "ragspan.delivery.count"
JUDGE: Final = "ragspan.judge"
ASKED: Final = "ragspan.asked"
ANNOTATOR_CODE: Final = "CODE"
ANNOTATOR_LLM: Final = "LLM"
DIMENSION_OTHER: Final = "_OTHER"

# Our own metrics, and the attributes that only they have
METRIC_SCORE: Final = "ragspan.score"
METRIC_LABELS: Final = "ragspan.labels"
PART: Final = "ragspan.part"
LABEL_UNKNOWN: Final = "unknown"
METRIC_QUEUE_SIZE: Final = "ragspan.queue.size"
METRIC_QUEUE_BYTES: Final = "ragspan.queue.bytes"
METRIC_QUEUE_CAPACITY: Final = "ragspan.queue.capacity"
METRIC_QUEUE_CAPACITY_BYTES: Final = "ragspan.queue.capacity.bytes"
METRIC_RECORDS: Final = "ragspan.records"
METRIC_OUTCOMES: Final = "ragspan.outcomes"
METRIC_CAUSES: Final = "ragspan.causes"
METRIC_JUDGE_DURATION: Final = "ragspan.judge.duration"
METRIC_JUDGE_TOKENS: Final = "ragspan.judge.tokens"
METRIC_JUDGE_COST: Final = "ragspan.judge.cost"
METRIC_DELIVERIES: Final = "ragspan.deliveries"
METRIC_FLEET_DELIVERIES: Final = "ragspan.fleet.deliveries"
METRIC_FLEET_IN_FLIGHT: Final = "ragspan.fleet.in_flight"
METRICS_OF_RECEIVER: Final = {
    "requests": "ragspan.receiver.requests",
    "spans": "ragspan.receiver.spans",
    "traces": "ragspan.receiver.traces",
}
ENGINE: Final = "ragspan.engine"
RESULT: Final = "ragspan.result"
REASON: Final = "ragspan.reason"
CAUSE_KIND: Final = "ragspan.cause"
STEP: Final = "ragspan.step"
DESTINATION: Final = "ragspan.destination"
RESULT_NOTHING_TO_SCORE: Final = "nothing_to_score"
RESULT_DROPPED: Final = "dropped"
RESULT_PUBLISHED: Final = "published"
