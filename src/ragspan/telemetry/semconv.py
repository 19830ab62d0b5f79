"""Every name that ragspan writes on telemetry, and nothing else.

The `gen_ai.*` names are still in development and have moved before, so they stand here as plain strings: the generated
constants of OpenTelemetry's own package are deprecated. What each name means to a reader is told in
`docs/attributes.md`.
"""
# ruff: noqa: S105 - the tokens here are those of language models

from __future__ import annotations

from typing import Final, Literal

SCOPE: Final = "ragspan"
"""Name of the instrumentation scope of all spans, events and metrics."""
SCHEMA_URL: Final = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"
"""The only one that the conventions for generative AI have, since they left those of version 1.42.0."""

# General names of OpenTelemetry
ERROR_TYPE: Final = "error.type"
ERROR_TYPE_OTHER: Final = "_OTHER"
DIMENSION_OTHER: Final = "_OTHER"
"""What the conventions prescribe for an error whose type is not known."""
LOG_RECORD_UID: Final = "log.record.uid"
"""Log records with the same one are the same, and a reader may leave all but one out."""
EVENT_EXCEPTION: Final = "exception"
EXCEPTION_TYPE: Final = "exception.type"
EXCEPTION_MESSAGE: Final = "exception.message"
EXCEPTION_STACKTRACE: Final = "exception.stacktrace"
SESSION_ID: Final = "session.id"
USER_ID: Final = "user.id"

# OpenTelemetry's names for generative AI
GEN_AI_OPERATION_NAME: Final = "gen_ai.operation.name"
GEN_AI_AGENT_NAME: Final = "gen_ai.agent.name"
GEN_AI_WORKFLOW_NAME: Final = "gen_ai.workflow.name"
GEN_AI_CONVERSATION_ID: Final = "gen_ai.conversation.id"
GEN_AI_DATA_SOURCE_ID: Final = "gen_ai.data_source.id"
GEN_AI_SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
GEN_AI_INPUT_MESSAGES: Final = "gen_ai.input.messages"
GEN_AI_OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
GEN_AI_PROVIDER_NAME: Final = "gen_ai.provider.name"
GEN_AI_REQUEST_MODEL: Final = "gen_ai.request.model"
GEN_AI_REQUEST_STREAM: Final = "gen_ai.request.stream"
GEN_AI_RESPONSE_ID: Final = "gen_ai.response.id"
GEN_AI_RESPONSE_MODEL: Final = "gen_ai.response.model"
GEN_AI_RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
GEN_AI_RETRIEVAL_DOCUMENTS: Final = "gen_ai.retrieval.documents"
GEN_AI_RETRIEVAL_QUERY_TEXT: Final = "gen_ai.retrieval.query.text"
GEN_AI_RETRIEVAL_TOP_K: Final = "gen_ai.retrieval.top_k"
GEN_AI_TOKEN_TYPE: Final = "gen_ai.token.type"
GEN_AI_TOOL_NAME: Final = "gen_ai.tool.name"
GEN_AI_TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
GEN_AI_TOOL_CALL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
GEN_AI_TOOL_CALL_RESULT: Final = "gen_ai.tool.call.result"
GEN_AI_USAGE_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
GEN_AI_USAGE_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
GEN_AI_EVALUATION_NAME: Final = "gen_ai.evaluation.name"
GEN_AI_EVALUATION_SCORE_VALUE: Final = "gen_ai.evaluation.score.value"
GEN_AI_EVALUATION_SCORE_LABEL: Final = "gen_ai.evaluation.score.label"
GEN_AI_EVALUATION_EXPLANATION: Final = "gen_ai.evaluation.explanation"
EVENT_GEN_AI_EVALUATION_RESULT: Final = "gen_ai.evaluation.result"

OPERATION_CHAT: Final = "chat"
OPERATION_EVALUATION: Final = "evaluation"
"""Not among the well-known values of `gen_ai.operation.name`, which allow others; in use elsewhere for the same."""
OPERATION_EXECUTE_TOOL: Final = "execute_tool"
OPERATION_INVOKE_AGENT: Final = "invoke_agent"
OPERATION_INVOKE_WORKFLOW: Final = "invoke_workflow"
OPERATION_RERANK: Final = "rerank"
"""Not among the well-known values either: the conventions have no operation for it."""
OPERATION_RETRIEVAL: Final = "retrieval"

# Names of OpenInference
OPENINFERENCE_SPAN_KIND: Final = "openinference.span.kind"
INPUT_VALUE: Final = "input.value"
INPUT_MIME_TYPE: Final = "input.mime_type"
OUTPUT_VALUE: Final = "output.value"
OUTPUT_MIME_TYPE: Final = "output.mime_type"
TAG_TAGS: Final = "tag.tags"
AGENT_NAME: Final = "agent.name"
TOOL_NAME: Final = "tool.name"
LLM_FINISH_REASON: Final = "llm.finish_reason"
LLM_MODEL_NAME: Final = "llm.model_name"
LLM_PROVIDER: Final = "llm.provider"
LLM_TOKEN_COUNT_PROMPT: Final = "llm.token_count.prompt"
LLM_TOKEN_COUNT_COMPLETION: Final = "llm.token_count.completion"
LLM_TOKEN_COUNT_TOTAL: Final = "llm.token_count.total"
LLM_TOKEN_COUNT_PROMPT_DETAILS_CACHE_READ: Final = "llm.token_count.prompt_details.cache_read"
RERANKER_QUERY: Final = "reranker.query"
RERANKER_MODEL_NAME: Final = "reranker.model_name"
RERANKER_TOP_K: Final = "reranker.top_k"

KIND_AGENT: Final = "AGENT"
KIND_CHAIN: Final = "CHAIN"
KIND_EVALUATOR: Final = "EVALUATOR"
KIND_LLM: Final = "LLM"
KIND_RERANKER: Final = "RERANKER"
KIND_RETRIEVER: Final = "RETRIEVER"
KIND_TOOL: Final = "TOOL"
ANNOTATOR_CODE: Final = "CODE"
ANNOTATOR_LLM: Final = "LLM"
MIME_TEXT: Final = "text/plain"
MIME_JSON: Final = "application/json"

EvaluationField = Literal["name", "score", "label", "annotator_kind", "identifier"]
DocumentField = Literal["id", "score", "content", "metadata"]
DocumentList = Literal["retrieval.documents", "reranker.input_documents", "reranker.output_documents"]
MessageList = Literal["llm.input_messages", "llm.output_messages"]
MessageField = Literal["role", "content", "tool_call_id"]
RequestField = Literal["id", "function.name", "function.arguments"]


def evaluation_attribute(index: int, field: EvaluationField) -> str:
    """OpenInference: a field of a span's evaluation number `index`, 0-based."""
    return f"evaluations.{index}.evaluation.{field}"


def document_attribute(index: int, field: DocumentField, among: DocumentList = "retrieval.documents") -> str:
    """OpenInference: a field of the document number `index`, 0-based, of a search or a reranker."""
    return f"{among}.{index}.document.{field}"


def message_attribute(among: MessageList, index: int, field: MessageField) -> str:
    """OpenInference: a field of a model's message number `index`, 0-based."""
    return f"{among}.{index}.message.{field}"


def tool_request_attribute(among: MessageList, index: int, place: int, field: RequestField) -> str:
    """OpenInference: a field of a message's request number `place`, 0-based, for a tool call."""
    return f"{among}.{index}.message.tool_calls.{place}.tool_call.{field}"


# Our own names on spans
RECORD_ID: Final = "ragspan.record_id"
FRAMEWORK: Final = "ragspan.framework"
ANSWER_STATUS: Final = "ragspan.answer.status"
ANSWER_REFUSAL: Final = "ragspan.answer.refusal"
ANSWER_SWALLOWED_ERRORS: Final = "ragspan.answer.swallowed_errors"
LANGUAGE: Final = "ragspan.language"
CONTEXTS_COUNT: Final = "ragspan.contexts.count"
JUDGE: Final = "ragspan.judge"
PROMPT_VERSION: Final = "ragspan.prompt_version"
EVALUATION_DURATION_MS: Final = "ragspan.evaluation.duration_ms"
DELIVERY_COUNT: Final = "ragspan.delivery.count"


def dimension_attribute(name: str) -> str:
    """An entry of the request's metadata that is told on purpose."""
    return f"ragspan.dimension.{name}"


def score_attribute(metric: str) -> str:
    return f"ragspan.score.{metric}"


def label_attribute(metric: str) -> str:
    return f"ragspan.label.{metric}"


def explanation_attribute(metric: str) -> str:
    return f"ragspan.explanation.{metric}"


def detail_attribute(metric: str, name: str) -> str:
    return f"ragspan.detail.{metric}.{name}"


def not_applicable_attribute(metric: str) -> str:
    return f"ragspan.not_applicable.{metric}"


def fallback_attribute(metric: str) -> str:
    return f"ragspan.fallback.{metric}"


def error_attribute(metric: str) -> str:
    return f"ragspan.error.{metric}"


# Our own metrics, and the attributes that only they have
METRIC_SCORE: Final = "ragspan.score"
METRIC_QUEUE_SIZE: Final = "ragspan.queue.size"
METRIC_QUEUE_BYTES: Final = "ragspan.queue.bytes"
METRIC_QUEUE_CAPACITY: Final = "ragspan.queue.capacity"
METRIC_QUEUE_CAPACITY_BYTES: Final = "ragspan.queue.capacity.bytes"
METRIC_RECORDS: Final = "ragspan.records"
METRIC_OUTCOMES: Final = "ragspan.outcomes"
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
DESTINATION: Final = "ragspan.destination"

RESULT_SCORED: Final = "scored"
RESULT_NOTHING_TO_SCORE: Final = "nothing_to_score"
RESULT_NOT_APPLICABLE: Final = "not_applicable"
RESULT_FAILED: Final = "failed"
RESULT_DROPPED: Final = "dropped"
RESULT_PUBLISHED: Final = "published"
RESULT_ACKNOWLEDGED: Final = "acknowledged"
RESULT_NACKED: Final = "nacked"
RESULT_DEAD_LETTERED: Final = "dead_lettered"

TOKEN_INPUT: Final = "input"
TOKEN_CACHED: Final = "cached"
TOKEN_OUTPUT: Final = "output"
