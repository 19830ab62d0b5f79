"""The names on telemetry that several modules use, and those of all metrics; a name that one module alone writes stands there.

`docs/attributes.md` says what each name means. The `gen_ai.*` names are still in development and have moved before.
"""
# ruff: noqa: S105 - the tokens here are those of language models

from __future__ import annotations

from typing import Final

SCOPE: Final = "ragspan"
"""Name of the instrumentation scope of all spans, events and metrics."""
SCHEMA_URL: Final = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"
"""The only one of the conventions for generative AI since they left the general ones in version 1.42.0."""

# General names of OpenTelemetry
ERROR_TYPE: Final = "error.type"
DIMENSION_OTHER: Final = "_OTHER"

# OpenTelemetry's names for generative AI
GEN_AI_OPERATION_NAME: Final = "gen_ai.operation.name"
GEN_AI_WORKFLOW_NAME: Final = "gen_ai.workflow.name"
GEN_AI_RESPONSE_ID: Final = "gen_ai.response.id"
GEN_AI_TOKEN_TYPE: Final = "gen_ai.token.type"
GEN_AI_EVALUATION_NAME: Final = "gen_ai.evaluation.name"
GEN_AI_EVALUATION_SCORE_LABEL: Final = "gen_ai.evaluation.score.label"

# Names of OpenInference
OPENINFERENCE_SPAN_KIND: Final = "openinference.span.kind"
INPUT_VALUE: Final = "input.value"
OUTPUT_VALUE: Final = "output.value"
RETRIEVAL_DOCUMENTS: Final = "retrieval.documents"
ANNOTATOR_CODE: Final = "CODE"
ANNOTATOR_LLM: Final = "LLM"

# Our own names on spans
RECORD_ID: Final = "ragspan.record_id"
FRAMEWORK: Final = "ragspan.framework"
ANSWER_STATUS: Final = "ragspan.answer.status"
CONTEXTS_COUNT: Final = "ragspan.contexts.count"
JUDGE: Final = "ragspan.judge"
ASKED: Final = "ragspan.asked"
PROMPT_VERSION: Final = "ragspan.prompt_version"
DELIVERY_COUNT: Final = "ragspan.delivery.count"

# Our own metrics, and the attributes that only they have
METRIC_SCORE: Final = "ragspan.score"
METRIC_LABELS: Final = "ragspan.labels"
PART: Final = "ragspan.part"
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
