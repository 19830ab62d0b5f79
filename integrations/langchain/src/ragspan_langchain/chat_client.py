"""LangChain's chat models as clients of an LLM judge."""

from __future__ import annotations

import contextlib
import inspect
import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import LLMResult
from langsmith import tracing_context

from ragspan.arguments import instance
from ragspan.capturing import suppressed
from ragspan.judges import ChatMessage, Completion
from ragspan.judges.llm import BlockingChatClient, EndpointCapabilities, completion_of


class LangChainChatClient(BlockingChatClient):
    """Any chat model of LangChain as the client of a judge: `LLMJudge(LangChainChatClient(model), name="my-model")`.

    The model is asked through its synchronous interface, in threads, so that it may be the very one that the application
    uses. The application's callbacks, its LangSmith project and its cache of replies do not get to know of it, and neither
    do handlers for the whole process where they heed OpenTelemetry's suppression of instrumentation, as those of ragspan
    and OpenInference do. Each completion is a request of its own; OpenAI's models give several for one prompt through
    `OpenAIJudge`, which is cheaper.

    Args:
        model: how long it waits and how often it retries is its own business. Its temperature is the judge's, if it has
            one.

    Raises:
        ConfigurationError: `model` is not a chat model.
    """

    def __init__(self, model: BaseChatModel) -> None:
        instance(BaseChatModel, "a chat model of LangChain").check("model", model)
        # From a cache, all votes would be the first one. Some streams lack the usage.
        super().__init__(model, callbacks=None, verbose=False, cache=False, disable_streaming=True)

    def ask(
        self,
        messages: Sequence[ChatMessage],
        *,
        schema: Mapping[str, Any],
        temperature: float,
        capabilities: EndpointCapabilities,
    ) -> Completion:
        asked = self.model_at(temperature, capabilities)
        if capabilities.response_format == "json_schema":
            strict = {"strict": True} if "strict" in inspect.signature(asked.with_structured_output).parameters else {}
            with contextlib.suppress(NotImplementedError):  # the prompt asks for JSON anyway
                asked = asked.with_structured_output({"title": "answer", **schema}, **strict)
        reply = _Reply()
        with suppressed(), tracing_context(enabled=False):
            try:
                asked.invoke([dict(message) for message in messages], config={"callbacks": [reply]})
            except Exception:
                if reply.result is None:  # else it is the framework that cannot parse it: whoever asked will see
                    raise
        if reply.result is None:
            raise RuntimeError("the model ended without a reply")
        generation: Any = reply.result.generations[0][0]
        message = generation.message
        told = (generation.generation_info, reply.result.llm_output, message.response_metadata, message.usage_metadata)
        kept = (*told, message.additional_kwargs)  # a refusal, and thoughts
        # The reply is the arguments of a tool where that is how the model was given the schema.
        text = json.dumps(message.tool_calls[0]["args"]) if message.tool_calls else message.text
        return completion_of([each for each in kept if isinstance(each, dict)], text)


class _Reply(BaseCallbackHandler):
    """Keeps the model's reply as it is, whatever a parser makes of it afterwards."""

    def __init__(self) -> None:
        self.result: LLMResult | None = None

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        self.result = response
