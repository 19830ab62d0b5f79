"""LlamaIndex's language models as clients of an LLM judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage as FrameworkMessage
from llama_index.core.base.llms.types import ChatResponse
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from pydantic import SecretStr

from ragspan.exceptions import ConfigurationError
from ragspan.judges.base import ChatMessage, Completion
from ragspan.judges.llm.blocking import BlockingChatClient
from ragspan.judges.llm.dialect import Dialect
from ragspan.outcomes import Usage
from ragspan.provider_replies import facts_of
from ragspan.telemetry.suppress import suppressed


class LlamaIndexChatClient(BlockingChatClient):
    """Any model of LlamaIndex as the client of a judge: `LLMJudge(LlamaIndexChatClient(llm), name="my-model")`.

    The model is asked through its synchronous `chat`, in threads, so that it may be the very one that the application uses.
    The application's callback manager does not hear of it, and its span handlers do not either where they heed
    OpenTelemetry's suppression of instrumentation, as those of ragspan and OpenInference do. Each completion is a request of
    its own.

    Args:
        llm: how long it waits and how often it retries is its own business. Its temperature is the judge's, if it has one.

    Raises:
        ConfigurationError: `llm` is no model of LlamaIndex.
    """

    def __init__(self, llm: LLM) -> None:
        if not isinstance(llm, LLM):
            raise ConfigurationError(f"llm should be a model of LlamaIndex, not a {type(llm).__name__}")
        super().__init__()
        self._llm = llm.model_copy(update={"callback_manager": _deaf_manager()})
        self._at_temperature: dict[float, LLM] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self._llm).__name__})"

    def ask(
        self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any], temperature: float, dialect: Dialect
    ) -> Completion:
        llm = self._at(temperature) if dialect.temperature else self._llm
        parameters = dialect.parameters(schema=schema, n=1, temperature=temperature)
        parameters.pop("temperature", None)  # as a parameter, many integrations leave it unread
        with suppressed():
            return _completion(llm.chat(_converted(messages, llm), **parameters))

    def secrets(self) -> Iterable[object]:
        for name, value in vars(self._llm).items():
            if isinstance(value, SecretStr):
                yield value.get_secret_value()
            elif "key" in name or "token" in name:
                yield value

    def _at(self, temperature: float) -> LLM:
        """The model at this temperature, where it has one; kept, because many models open their connections late."""
        if "temperature" not in type(self._llm).model_fields:
            return self._llm
        if temperature not in self._at_temperature:
            self._at_temperature[temperature] = self._llm.model_copy(update={"temperature": temperature})
        return self._at_temperature[temperature]


def _deaf_manager() -> CallbackManager:
    """A manager that tells nobody; one that is made without handlers would take those of the application."""
    manager = CallbackManager()
    manager.set_handlers([])
    return manager


def _converted(messages: Sequence[ChatMessage], llm: LLM) -> list[FrameworkMessage]:
    roles = {"system": llm.metadata.system_role}
    return [
        FrameworkMessage(message["content"], role=roles.get(message["role"], message["role"])) for message in messages
    ]


def _completion(response: ChatResponse) -> Completion:
    facts = facts_of((response.raw, response.additional_kwargs))
    usage = Usage(
        requests=1,
        input_tokens=facts.input_tokens or 0,
        cached_tokens=_cached_tokens(response.raw),
        output_tokens=facts.output_tokens or 0,
    )
    cut_off = (facts.finish_reason or "").lower() in _NO_ANSWER
    return Completion(text="" if cut_off else response.message.content or "", usage=usage)


def _cached_tokens(raw: object) -> int:
    """What providers call it: OpenAI, Anthropic, Google."""
    usage = _get(raw, "usage") or _get(raw, "usage_metadata")
    details = _get(usage, "prompt_tokens_details")
    places = ((details, "cached_tokens"), (usage, "cache_read_input_tokens"), (usage, "cached_content_token_count"))
    counts = (_get(place, name) for place, name in places)
    return next((count for count in counts if isinstance(count, int)), 0)


def _get(place: object, name: str) -> Any:
    return place.get(name) if isinstance(place, Mapping) else getattr(place, name, None)


_NO_ANSWER = {"length", "max_tokens", "content_filter", "safety", "refusal"}
