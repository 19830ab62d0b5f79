"""LangChain's chat models as clients of an LLM judge."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables import Runnable
from langsmith import tracing_context
from pydantic import SecretStr

from ragspan.capturing import suppressed
from ragspan.exceptions import ConfigurationError
from ragspan.judges import ChatMessage, Completion
from ragspan.judges.llm import BlockingChatClient, EndpointCapabilities, at_temperature, completion_of
from ragspan_langchain.payloads import provider_metadata_in


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
        if not isinstance(model, BaseChatModel):
            raise ConfigurationError(
                f"model is of the class {type(model).__name__}, but should be a chat model of LangChain"
            )
        super().__init__()
        self._model = model.model_copy(update=_kept_apart(model))
        self._at_temperature: dict[float, BaseChatModel] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self._model).__name__})"

    def ask(
        self,
        messages: Sequence[ChatMessage],
        *,
        schema: Mapping[str, Any],
        temperature: float,
        capabilities: EndpointCapabilities,
    ) -> Completion:
        asking = self._asking(schema=schema, temperature=temperature, capabilities=capabilities)
        reply = _Reply()
        with suppressed(), tracing_context(enabled=False):
            try:
                asking.invoke([dict(message) for message in messages], config={"callbacks": [reply]})
            except Exception:
                if reply.result is None:  # else it is the framework that cannot parse it: whoever asked will see
                    raise
        if reply.result is None:
            raise RuntimeError("the model ended without a reply")
        return _completion(reply.result)

    def secrets(self) -> Iterable[object]:
        return [value.get_secret_value() for value in vars(self._model).values() if isinstance(value, SecretStr)]

    def _asking(
        self, *, schema: Mapping[str, Any], temperature: float, capabilities: EndpointCapabilities
    ) -> Runnable[Any, Any]:
        model = self._model
        if capabilities.takes("temperature"):
            model = at_temperature(model, temperature, self._at_temperature)
        if capabilities.response_format != "json_schema":
            return model
        strict = {"strict": True} if "strict" in inspect.signature(model.with_structured_output).parameters else {}
        try:
            return model.with_structured_output({"title": "answer", **schema}, **strict)
        except NotImplementedError:  # the prompt asks for JSON anyway
            return model


class _Reply(BaseCallbackHandler):
    """Keeps the model's reply as it is, whatever a parser makes of it afterwards."""

    def __init__(self) -> None:
        self.result: LLMResult | None = None

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        self.result = response


def _kept_apart(model: BaseChatModel) -> dict[str, Any]:
    """What differs in the judge's copy of a model.

    No callbacks, and no printing, of the application. No cache: votes that all are the first one are not votes. No streams:
    some of them lack the usage.
    """
    apart = {"callbacks": None, "verbose": False, "cache": False, "disable_streaming": True}
    return {name: value for name, value in apart.items() if name in type(model).model_fields}


def _completion(result: LLMResult) -> Completion:
    generation = result.generations[0][0] if result.generations else None
    message = getattr(generation, "message", None)
    metadata = provider_metadata_in(
        vars(result), vars(generation) if generation else {}, vars(message) if message else {}
    )
    kept = (*metadata, getattr(message, "additional_kwargs", None))  # a refusal, and thoughts
    return completion_of(
        [each for each in kept if isinstance(each, dict)], _text(message) if isinstance(message, AIMessage) else ""
    )


def _text(message: AIMessage) -> str:
    """The reply, which is the arguments of a tool where that is how the model was given the schema."""
    return json.dumps(message.tool_calls[0]["args"]) if message.tool_calls else message.text
