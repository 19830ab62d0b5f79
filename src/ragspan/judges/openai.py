"""The judge for OpenAI and for every endpoint that speaks its chat protocol."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from ragspan.arguments import SOME_SECONDS, TEXT, Rule, one_of, whole, wrong
from ragspan.config import JudgeMode
from ragspan.judges.endpoint import MAX_RETRIES, TIMEOUT, ChatEndpoint
from ragspan.judges.judge_catalogue import texts_in
from ragspan.judges.llm.capabilities import EndpointCapabilities
from ragspan.judges.llm.llm_judge import LLMJudge
from ragspan.judges.presets import PRESETS
from ragspan.judges.session import Price

if TYPE_CHECKING:
    from openai import Omit

_FIELDS = Rule("a dictionary of fields, such as {'reasoning_effort': 'low'}", lambda value: isinstance(value, Mapping))


PRICES_AS_OF: Final = "2026-06"
_PRICES: Final = """\
gpt-4o 2.50 10.00 1.25
gpt-4o-2024-05-13 5.00 15.00
gpt-4o-mini 0.15 0.60 0.075
gpt-4.1 2.00 8.00 0.50
gpt-4.1-mini 0.40 1.60 0.10
gpt-4.1-nano 0.10 0.40 0.025
gpt-5 1.25 10.00 0.125
gpt-5-mini 0.25 2.00 0.025
gpt-5-nano 0.05 0.40 0.005
gpt-5.1 1.25 10.00 0.125
gpt-5.2 1.75 14.00 0.175
gpt-5.4 2.50 15.00 0.25
gpt-5.4-mini 0.75 4.50 0.075
gpt-5.4-nano 0.20 1.25 0.02
gpt-5.5 5.00 30.00 0.50
o3 2.00 8.00 0.50
o3-mini 1.10 4.40 0.55
o4-mini 1.10 4.40 0.275
"""
"""Of likely judges, with standard processing, or the last ones of older models: input, output, and input from the cache."""
PRICES: Final[Mapping[str, Price]] = {
    name: Price(*map(float, amounts)) for name, *amounts in map(str.split, _PRICES.splitlines())
}
"""By the model's name, without a date."""
_HOSTS: Final = ("api.openai.com", ".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
"""Azure's global deployments cost what OpenAI takes; at other hosts, OpenAI's regional ones as well, prices differ."""


class OpenAIJudge(LLMJudge):
    """Judges with a model of OpenAI, or of another provider or server that speaks its protocol.

    It needs a key: `api_key=`, or the provider's variable, such as `OPENAI_API_KEY`. A server at `base_url=` may need none.

    The `openai` client retries after rate limits (429), timeouts, lost connections, and errors of the server (408, 409, 5xx).
    It waits as long as `Retry-After` says, up to one minute (two in later versions). Without that header it waits half a
    second, then twice as long each time, up to 8 s. An engine cancels the request after its `metric_timeout`. If requests keep
    failing, the judge's circuit breaker opens.

    Args:
        model: the model's name, as the endpoint knows it.
        provider: a row of `ragspan judges`, such as `"anthropic"`: it gives the address, the key's variable, and what the
            endpoint takes.
        base_url: the endpoint; else the provider's.
        api_key: the key; else that of the provider's variable. Or an async function that returns one for each request, such as
            `get_bearer_token_provider` of `azure.identity.aio` makes.
        timeout: seconds for one attempt, more than 0.
        max_retries: further attempts after rate limits, timeouts, and errors of the server or the connection, 0 or more.
        extra_body: further fields of each request, such as `{"reasoning_effort": "low"}`.
        extra_headers: further headers of each request, such as `{"anthropic-workspace-id": "wrkspc_1"}`.
        price: what the model costs. With None, the price is from a small table of OpenAI's models if the endpoint is
            OpenAI's, or a deployment at Azure that is named after its model; else it is not known.
        temperature: as in `LLMJudge`, and so are `max_context_chars` and `mode`.
        max_context_chars: see there.
        mode: see there.

    Raises:
        ConfigurationError: an argument is wrong, or there is no key or no address.
    """

    def __init__(
        self,
        model: str,
        *,
        provider: str = "openai",
        base_url: str | None = None,
        api_key: str | Callable[[], Awaitable[str]] | None = None,
        timeout: float = TIMEOUT,
        max_retries: int = MAX_RETRIES,
        extra_body: Mapping[str, Any] | None = None,
        extra_headers: Mapping[str, str] | None = None,
        price: Price | None = None,
        temperature: float = 0.7,
        max_context_chars: int = 60_000,
        mode: JudgeMode = "one_request",
    ) -> None:
        from openai import Omit

        one_of(*PRESETS).check("provider", provider)
        preset = PRESETS[provider]
        if not TEXT.fits(model):
            raise wrong("model", model, f"a model's name, such as {preset.example!r}")
        SOME_SECONDS.check("timeout", timeout)
        whole(0).check("max_retries", max_retries)
        _FIELDS.or_none().check("extra_body", extra_body)
        _FIELDS.or_none().check("extra_headers", extra_headers)
        address, key = preset.endpoint(base_url, "made" if callable(api_key) else api_key)
        # Another provider does not get the organization and the project of OpenAI's own variables.
        absent = () if provider == "openai" else ("OpenAI-Organization", "OpenAI-Project")
        headers: dict[str, str | Omit] = {**dict.fromkeys(absent, Omit()), **(extra_headers or {})}
        endpoint = ChatEndpoint(
            address,
            model,
            extra_body or {},
            takes=EndpointCapabilities(response_format=preset.response_format, left_out=preset.left_out),
            api_key=api_key if callable(api_key) else key,
            key_variables=preset.keys,
            headers=headers,
            secrets=[part for text in texts_in([extra_headers, extra_body]) for part in (text, *text.split())],
            timeout=timeout,
            max_retries=max_retries,
        )
        super().__init__(
            endpoint,
            name=f"{provider}:{model}",
            temperature=temperature,
            max_context_chars=max_context_chars,
            mode=mode,
            price=price or price_of(model, urlsplit(address).hostname),
        )


def price_of(model: str, host: str | None = None) -> Price | None:
    """The price of one of OpenAI's models at this host, from the table; None if it is not known.

    A dated name such as `gpt-4o-mini-2024-07-18` has the model's price, unless the table has one for the date. A deployment at
    Azure has one if it is named after its model. Without a host it is OpenAI's own.
    """
    host = (host or _HOSTS[0]).lower()
    if host != _HOSTS[0] and not host.endswith(_HOSTS[1:]):
        return None
    return PRICES.get(model) or PRICES.get(re.sub(r"-\d{4}-\d{2}-\d{2}$", "", model))
