"""The judge for OpenAI and for every endpoint that speaks its chat protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ragspan.arguments import wrong
from ragspan.config import variable
from ragspan.exceptions import ConfigurationError
from ragspan.judges.base import ChatMessage, Completion
from ragspan.judges.endpoint import Endpoint
from ragspan.judges.llm.chat_protocol import EndpointCapabilities, read_completions
from ragspan.judges.llm.judge import LLMJudge
from ragspan.judges.prices import Price, price_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class OpenAIJudge(LLMJudge):
    """Judges with a model of OpenAI, or of a compatible server: vLLM, Ollama, llama.cpp, Azure through `client=`.

    It needs a key: `api_key=`, or `OPENAI_API_KEY` in the environment. A server at `base_url=` may need none.

    The `openai` client retries after rate limits (429), timeouts, lost connections, and errors of the server (408, 409, 5xx).
    It waits as long as `Retry-After` says, up to one minute (two in later versions). Without that header it waits half a
    second, then twice as long each time, up to 8 s. An engine cancels the request after its `metric_timeout`. If requests keep
    failing, the judge's circuit breaker opens.

    It pickles, with the key that it was given, so that another process can judge; that process opens its own connections. With
    `client=` it does not pickle.

    Args:
        model: the model's name, as the endpoint knows it.
        base_url: the endpoint; else `OPENAI_BASE_URL`, else OpenAI's own.
        api_key: the key; else `OPENAI_API_KEY`.
        client: an `openai.AsyncOpenAI` to use as it is, in place of `base_url`, `api_key`, `timeout` and `max_retries`.
            It has to work in the judge's event loop. What it reads of an answer, how long that may take, and whether it
            follows a redirect to another host, are its own affair.
        timeout: seconds for one attempt.
        max_retries: further attempts after rate limits, timeouts, and errors of the server or the connection.
        extra_body: further fields of each request, such as `{"reasoning_effort": "low"}`.
        temperature: as in `LLMJudge`, and so are `max_context_chars` and `max_response_chars`.
        max_context_chars: see there.
        max_response_chars: see there.
        price: what the model costs. With None, the price is from a small table of OpenAI's models if the endpoint is
            OpenAI's, and unknown for another server.

    Raises:
        ConfigurationError: an argument is wrong, or there is no key.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        client: AsyncOpenAI | None = None,
        timeout: float = 30.0,
        max_retries: int = 2,
        extra_body: Mapping[str, Any] | None = None,
        temperature: float = 0.7,
        max_context_chars: int = 60_000,
        max_response_chars: int = 20_000,
        price: Price | None = None,
    ) -> None:
        if not model.strip():
            raise wrong("model", model, "a model's name, such as 'gpt-4o-mini'")
        if client is not None and (base_url is not None or api_key is not None):
            raise ConfigurationError("client= brings its own endpoint and key: leave out base_url= and api_key=")
        if client is None and not api_key:
            api_key = _key_in_environment_or_none_needed(base_url)
        endpoint = Endpoint(
            base_url or variable("OPENAI_BASE_URL"),
            api_key=api_key,
            client=client,
            timeout=timeout,
            max_retries=max_retries,
        )
        super().__init__(
            OpenAIChatClient(endpoint, model, extra_body or {}),
            name=f"openai:{model}",
            temperature=temperature,
            max_context_chars=max_context_chars,
            max_response_chars=max_response_chars,
            price=price or (price_of(model) if _asks_openai(base_url, client) else None),
        )


class OpenAIChatClient:
    """A `ChatClient` for one model of an endpoint; `extra_body` is that of `OpenAIJudge`.

    If the endpoint rejects a parameter (a schema, several choices, a temperature), later requests leave it out.
    """

    def __init__(self, endpoint: Endpoint, model: str, extra_body: Mapping[str, Any]) -> None:
        self._endpoint = endpoint
        self._model = model
        self._extra_body = dict(extra_body)
        self._capabilities = EndpointCapabilities()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r})"

    async def complete(
        self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any], n: int, temperature: float
    ) -> list[Completion]:
        import openai

        capabilities = self._capabilities
        async with self._endpoint.asking([message["content"] for message in messages]) as post:
            while True:
                parameters = capabilities.parameters(schema=schema, n=n, temperature=temperature)
                try:
                    reply = await post({"model": self._model, "messages": messages} | parameters | self._extra_body)
                except openai.APIStatusError as error:
                    simpler = capabilities.without(error)
                    if simpler is None:
                        raise
                    capabilities = simpler
                else:
                    self._capabilities = capabilities
                    return read_completions(reply)


def _key_in_environment_or_none_needed(base_url: str | None) -> str | None:
    """None if the client finds a key by itself, a placeholder if the server may need none.

    Raises:
        ConfigurationError: there is no key for OpenAI's own endpoint.
    """
    if variable("OPENAI_API_KEY"):
        return None
    if base_url is not None or variable("OPENAI_BASE_URL"):
        return "no-key"
    raise ConfigurationError(
        "there is no key for OpenAI: set RAGSPAN_JUDGE_API_KEY or OPENAI_API_KEY, or give api_key=; for a server that needs "
        "none, set RAGSPAN_JUDGE_BASE_URL or give base_url="
    )


def _asks_openai(base_url: str | None, client: AsyncOpenAI | None) -> bool:
    address = str(client.base_url) if client is not None else base_url or variable("OPENAI_BASE_URL")
    return address is None or urlsplit(address).hostname == _OPENAI


_OPENAI = "api.openai.com"
