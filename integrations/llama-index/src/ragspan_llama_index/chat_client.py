"""LlamaIndex's language models as clients of an LLM judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage as FrameworkMessage
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from pydantic import SecretStr

from ragspan.capturing import suppressed
from ragspan.exceptions import ConfigurationError
from ragspan.judges import ChatMessage, Completion
from ragspan.judges.llm import BlockingChatClient, EndpointCapabilities, at_temperature, completion_of


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
        if not isinstance(llm, LLM):
            raise ConfigurationError(f"llm is of the class {type(llm).__name__}, but should be a model of LlamaIndex")
        super().__init__()
        deaf = CallbackManager()  # made without handlers it would take those of the application
        deaf.set_handlers([])
        self._llm = llm.model_copy(update={"callback_manager": deaf})
        self._at_temperature: dict[float, LLM] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self._llm).__name__})"

    def ask(
        self,
        messages: Sequence[ChatMessage],
        *,
        schema: Mapping[str, Any],
        temperature: float,
        capabilities: EndpointCapabilities,
    ) -> Completion:
        llm = self._llm
        if capabilities.takes("temperature"):
            llm = at_temperature(llm, temperature, self._at_temperature)
        parameters = capabilities.parameters(schema=schema, n=1, temperature=temperature)
        parameters.pop("temperature", None)  # as a parameter, many integrations leave it unread
        roles = {"system": llm.metadata.system_role}
        given = [FrameworkMessage(each["content"], role=roles.get(each["role"], each["role"])) for each in messages]
        with suppressed():
            response = llm.chat(given, **parameters)
        return completion_of((response.raw, response.additional_kwargs), response.message.content or "")

    def secrets(self) -> Iterable[object]:
        for name, value in vars(self._llm).items():
            if isinstance(value, SecretStr):
                yield value.get_secret_value()
            elif "key" in name or "token" in name:
                yield value
