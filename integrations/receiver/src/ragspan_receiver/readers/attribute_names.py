"""How each convention names what a span holds. A name belongs to one convention, so that one table serves all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["chain", "agent", "model", "retriever", "tool", "ignored"]
"""What a span says that it is. `ignored` is what serves no answer, with all inside it: an evaluation."""


class Convention(NamedTuple):
    """How spans of a convention say of what kind they are."""

    attributes: Sequence[str]
    """Those that say it; only spans of the convention have one of them."""
    words: Mapping[Kind | None, str]
    """What they say for each kind; those of None take no part in an answer."""
    others: Kind | None = None
    """What all other words mean."""
    framework: str = ""
    """Of spans whose scope does not tell it."""

    def kind_of(self, attributes: Mapping[str, Any]) -> tuple[Kind | None, bool]:
        """The kind of a span, and whether its word is known."""
        said = str(next((attributes[name] for name in self.attributes if attributes.get(name)), "")).lower()
        known = [kind for kind, words in self.words.items() if said in words.split()]
        return (known[0], True) if known else (self.others, self.others is not None)


_OBSERVATIONS: Mapping[Kind | None, str] = {
    "model": "generation llm",
    "agent": "agent",
    "retriever": "retriever",
    "tool": "tool",
    "ignored": "evaluator guardrail",
    None: "embedding event",
}
_OPENINFERENCE: Mapping[Kind | None, str] = {
    "model": "llm",
    "agent": "agent",
    "chain": "chain prompt reranker",
    "retriever": "retriever",
    "tool": "tool",
    "ignored": "evaluator guardrail",
    None: "embedding",
}
_VERCEL: Mapping[Kind | None, str] = {
    "model": "ai.generatetext.dogenerate ai.streamtext.dostream ai.generateobject.dogenerate ai.streamobject.dostream",
    "chain": "ai.generatetext ai.streamtext ai.generateobject ai.streamobject",
    "tool": "ai.toolcall",
    None: "ai.embed ai.embed.doembed ai.embedmany ai.embedmany.doembed",
}
_GENAI: Mapping[Kind | None, str] = {
    "model": "chat completion text_completion generate_content",
    "retriever": "retrieval retrieve vector_db_retrieve",
    "tool": "execute_tool tool",
    "agent": "invoke_agent agent",
    "chain": "invoke_workflow execute_task workflow task rerank",
    "ignored": "evaluate",
    None: "create_agent embeddings embedding",
}
GENAI = Convention(["gen_ai.operation.name", "llm.request.type", "traceloop.span.kind"], _GENAI)
LANGSMITH = Convention(["langsmith.span.kind"], _OBSERVATIONS, "chain", "langchain")
CONVENTIONS = (
    Convention(["openinference.span.kind"], _OPENINFERENCE),
    Convention(["ai.operationId"], _VERCEL, framework="vercel_ai"),
    Convention(["langfuse.observation.type"], _OBSERVATIONS, "chain", "langfuse"),
    LANGSMITH,
    GENAI,
)
WRAPPING = (LANGSMITH, GENAI)
"""These write fields of their own around what a step was called with and gave."""
MODEL_PREFIXES = ("gen_ai.", "llm.", "ai.", "gcp.vertex.agent.", "mlflow.span", "lmnr.span")
"""The attributes of spans about models begin with these, whether a convention is read or not."""

# The attributes by what they hold, the surest first.
NAME = (
    *("tool.name", "agent.name", "langsmith.trace.name", "traceloop.entity.name", "gen_ai.tool.name"),
    *("gen_ai.agent.name", "gen_ai.workflow.name", "ai.toolCall.name", "ai.telemetry.functionId"),
)
GIVEN = (
    *("input.value", "traceloop.entity.input", "langfuse.observation.input", "gen_ai.tool.call.arguments"),
    *("gen_ai.prompt", "ai.toolCall.args", "ai.toolCall.input"),
)
"""What a step was called with, as text or JSON."""
GAVE = (
    *("output.value", "traceloop.entity.output", "langfuse.observation.output", "gen_ai.tool.call.result"),
    *("gen_ai.completion", "ai.toolCall.result", "ai.toolCall.output"),
)
SYSTEM = "gen_ai.system_instructions"
PROMPT = (
    *("llm.input_messages", "gen_ai.input.messages", "gen_ai.prompt", "ai.prompt.messages", "ai.prompt"),
    "llm.prompts",
)
REPLY = ("llm.output_messages", "gen_ai.output.messages", "gen_ai.completion", "ai.response.text", "ai.response.object")
REPLY_CALLS = "ai.response.toolCalls"
TAGS = ("tag.tags", "langfuse.trace.tags")
CALL_ID = ("gen_ai.tool.call.id", "ai.toolCall.id")
QUERY = ("gen_ai.retrieval.query.text",)
FOUND = ("gen_ai.retrieval.documents", "retrieval.documents")
DATA_SOURCE = "gen_ai.data_source.id"
MODEL = ("llm.model_name", "gen_ai.request.model", "langfuse.observation.model.name", "ai.model.id")
PROVIDER = ("llm.provider", "llm.system", "gen_ai.provider.name", "gen_ai.system", "ai.model.provider")
FINISH_REASON = ("llm.finish_reason", "gen_ai.response.finish_reasons", "ai.response.finishReason")
METADATA_PREFIXES = (
    *("traceloop.association.properties.", "ai.telemetry.metadata.", "langfuse.trace.metadata."),
    *("langfuse.observation.metadata.", "langsmith.metadata."),
)
