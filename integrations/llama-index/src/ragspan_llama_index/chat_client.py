"""LlamaIndex's language models as clients of an LLM judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage as FrameworkMessage
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM

from ragspan.arguments import instance
from ragspan.capturing import suppressed
from ragspan.judges import ChatMessage, Completion
from ragspan.judges.llm import BlockingChatClient, EndpointCapabilities, completion_of


class LlamaIndexChatClient(BlockingChatClient):
    """Any model of LlamaIndex as the client of a judge: `LLMJudge(LlamaIndexChatClient(llm), name="my-model")`.

    The model is asked through its synchronous `chat`, in threads, so that it may be the very one that the application uses.
    The application's callback manager does not hear of it, and its span handlers do not either where they heed
    OpenTelemetry's suppression of instrumentation, as those of ragspan and OpenInference do. Each completion is a request of
    its own.

    Args:
        llm: how long it waits and how often it retries is its own business. Its temperature is the judge's, if it has one.

    Raises:
        ConfigurationError: `llm` is not a model of LlamaIndex.
    """

    def __init__(self, llm: LLM) -> None:
        instance(LLM, "a model of LlamaIndex").check("llm", llm)
        silent = CallbackManager()  # made without handlers it would take those of the application
        silent.set_handlers([])
        super().__init__(llm, callback_manager=silent)

    def ask(
        self,
        messages: Sequence[ChatMessage],
        *,
        schema: Mapping[str, Any],
        temperature: float,
        capabilities: EndpointCapabilities,
    ) -> Completion:
        llm = self.model_at(temperature, capabilities)
        parameters = capabilities.parameters(schema=schema, n=1, temperature=temperature)
        parameters.pop("temperature", None)  # as a parameter, many integrations leave it unread
        roles = {"system": llm.metadata.system_role}
        given = [FrameworkMessage(each["content"], role=roles.get(each["role"], each["role"])) for each in messages]
        with suppressed():
            response = llm.chat(given, **parameters)
        return completion_of((response.raw, response.additional_kwargs), response.message.content or "")
