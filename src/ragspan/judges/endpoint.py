"""An HTTP endpoint that a judge asks: answers are bounded, passing failures are retried, and secrets are not logged.

The `openai` client sends the requests, to endpoints of other protocols as well: it retries and keeps connections. The HTTP
client logs the address of each request, so credentials in an address become a header.
"""

from __future__ import annotations

import contextlib
import importlib
import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from ragspan.addresses import cause_of, secrets_in_url, without_credentials
from ragspan.arguments import instance
from ragspan.exceptions import ConfigurationError, JudgeError
from ragspan.judges.clients import MAX_BODY, clients_for
from ragspan.judges.llm.capabilities import Attempt, EndpointCapabilities, EndpointHabits
from ragspan.judges.llm.errors import is_outage, redacted_message, status_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI, Omit

PATH = "/chat/completions"
TIMEOUT = 30.0
"""Seconds for one attempt."""
MAX_RETRIES = 2
"""Further attempts of the client; see docs/judges.md for the other layers of retries."""


class Endpoint:
    """Where requests of one kind go.

    It opens clients of its own, from the options of `client=` if there is one. What the first request needs is imported and
    read when the endpoint is made. Requests are made in an engine's thread, and a fork during an import there would leave the
    child with a lock that is never released. It pickles, unless it has a given client: another process opens its own connections.

    Args:
        base_url: the endpoint; None is OpenAI's own.
        path: follows the base in every address.
        api_key: sent as a bearer token.
        key_variables: where the key may be, for the words of an error.
        headers: of each request, besides the client's; `Omit()` leaves one of these out.
        secrets: further texts that no message may hold.
        client: an `openai.AsyncOpenAI` whose options are used, in place of `base_url` and `api_key`. One with an `http_client=`
            of its own is used as it is, and only in the event loop that uses it first.
        timeout: seconds for one attempt.
        max_retries: further attempts after rate limits, timeouts, and errors of the server or the connection.

    Raises:
        ConfigurationError: `base_url` is not an address, `client` is not asynchronous, or the proxy that the environment names
            cannot be used.
    """

    def __init__(
        self,
        base_url: str | None,
        *,
        path: str = PATH,
        api_key: str | None = None,
        key_variables: Sequence[str] = ("OPENAI_API_KEY",),
        headers: Mapping[str, str | Omit] | None = None,
        secrets: Sequence[str] = (),
        client: AsyncOpenAI | None = None,
        timeout: float = TIMEOUT,
        max_retries: int = MAX_RETRIES,
    ) -> None:
        _import_for_requests()
        import openai

        words = "an openai.AsyncOpenAI or openai.AsyncAzureOpenAI, because judges wait in an event loop"
        instance(openai.AsyncOpenAI, words).or_none().check("client", client)
        options = {"api_key": api_key and api_key.strip(), "timeout": timeout, "max_retries": max_retries}
        if base_url is not None and client is None:
            options |= _address(base_url, headers or {})
        self._clients = clients_for(client, options)
        again: dict[str, Any] = {"path": path, "api_key": api_key, "key_variables": key_variables, "headers": headers}
        again |= {"secrets": secrets, "timeout": timeout, "max_retries": max_retries}
        self._again = None if client is not None else partial(Endpoint, base_url, **again)
        self._path = path
        self._key_advice = " or ".join(("check the key: api_key=, RAGSPAN_JUDGE_API_KEY", *key_variables))
        address_used = str(client.base_url) if client is not None else base_url or ""
        self._secrets: list[object] = [*secrets_in_url(address_used), *secrets]

    def __reduce__(self) -> tuple[partial[Endpoint], tuple[()]]:
        if self._again is None:
            raise pickle.PicklingError(
                "a judge with client= cannot be sent to another process: give it base_url= and api_key= in place of client="
            )
        return self._again, ()

    async def post(
        self, body: Callable[[EndpointCapabilities], Mapping[str, Any]], habits: EndpointHabits, texts: Sequence[str]
    ) -> object:
        """The answer to a request, as plain JSON. What the endpoint refuses of it is left out, now and later.

        Args:
            body: makes the request's body of what the endpoint takes.
            habits: of the endpoint.
            texts: of the request, which no error repeats.

        Raises:
            JudgeError: the endpoint refuses, cannot be reached, or gives an answer that cannot be read; or the key or the
                client cannot be used.
        """
        import openai

        secrets = self._secrets

        def say(error: Exception) -> str:
            return redacted_message(error, texts, secrets=secrets)

        try:
            async with self._clients.borrowed() as client:
                key, attempt = getattr(client, "api_key", None), Attempt(habits)
                secrets = [key, *self._secrets]
                self._require_sendable(key)
                while True:
                    fields = body(attempt.capabilities)
                    try:
                        # Without the client's types: with them, a third of a request's processor time goes into checking
                        # each part of the schema and of the response.
                        reply: object = await client.post(self._path, body=fields, cast_to=object)
                        _raise_reported(reply)
                    except (openai.APIStatusError, _ReportedError) as error:
                        if not attempt.goes_on_without(error, fields, say):
                            raise
                    else:
                        attempt.ended_well()
                        return reply
        except (openai.OpenAIError, _ReportedError) as error:
            message = say(error)
            # From None, because the cause may quote the prompt in a traceback.
            kind = "InvalidResponse" if isinstance(error, _ReportedError) else type(error).__name__
            words = message + self._advice(error, message)
            raise JudgeError(kind, words, outage=is_outage(error), status=status_of(error)) from None
        except (ValueError, RecursionError) as error:  # a body that is not JSON, was cut, or nests too deep
            kind = type(error).__name__
            message = (
                f"the endpoint's answer cannot be read ({kind}), or is longer than {MAX_BODY:,} bytes: check base_url"
            )
            raise JudgeError("InvalidResponse", message, outage=True) from None

    def _require_sendable(self, key: object) -> None:
        """Raise a `JudgeError` if HTTP cannot carry the key, which would look like an endpoint that cannot be reached."""
        odd = _NOT_IN_HEADERS.search(key) if isinstance(key, str) else None
        if odd is not None:
            message = f"the key cannot be sent, because it holds a character (U+{ord(odd[0]):04X}) that no key has"
            advice = f"copy it again, and {self._key_advice}"
            raise JudgeError("AuthenticationError", f"{message}: {advice}", outage=True, status=_NO_KEY)

    def _advice(self, error: Exception, message: str) -> str:
        """What to do about an error, where the endpoint's words do not say it."""
        kind = getattr(error, "status_code", None) or type(error).__name__
        by_words = (words for pattern, words in _BY_WORDS.items() if re.search(pattern, message, re.IGNORECASE))
        advice = self._key_advice if kind == _NO_KEY else _ADVICE.get(kind) or next(by_words, None)
        if kind == _NOT_FOUND:
            chat = ", which usually ends in /v1: `ragspan judges` shows the address"
            advice = f"{advice}{chat if self._path == PATH else f', to which {self._path} is added'}"
        if kind == _UNREACHABLE and (cause := cause_of(error)):
            advice = f"{cause}; {advice}"
        return f" ({advice})" if advice else ""


class _ReportedError(Exception):
    """An error that a gateway reports with status 200."""

    def __init__(self, body: object) -> None:
        super().__init__("the endpoint reports an error")
        self.body = body
        code = next((body[name] for name in _CODES if body.get(name)), None) if isinstance(body, Mapping) else None
        self.code = int(code) if isinstance(code, str) and code.isdecimal() else code


def _raise_reported(reply: object) -> None:
    """Raise the error that an answer with status 200 reports, if it does."""
    if (reported := _error_in(reply)) is not None:
        raise _ReportedError(reported)


def _error_in(reply: object) -> object | None:
    if isinstance(reply, list) and len(reply) == 1:  # Google
        reply = reply[0]
    if not isinstance(reply, Mapping):
        return None
    named: object = reply.get("error") or reply.get("errors") or None
    if named is not None or reply.get("choices"):
        return named
    status: object = reply.get("base_resp")  # of MiniMax, which has it in good answers, too
    if isinstance(status, Mapping) and status.get("status_code"):
        return status
    return reply if any(reply.get(name) for name in _ERROR_FIELDS) else None


def _address(base_url: str, headers: Mapping[str, str | Omit]) -> dict[str, Any]:
    """The client's options for this address; credentials become a header.

    Raises:
        ConfigurationError: it is not an address.
    """
    try:
        parts, authorization = without_credentials(base_url)
    except ValueError:
        raise ConfigurationError(
            "base_url, RAGSPAN_JUDGE_BASE_URL or OPENAI_BASE_URL should be an address such as 'http://localhost:8000/v1'"
        ) from None
    return {
        "base_url": parts._replace(query="").geturl(),
        "default_query": dict(parse_qsl(parts.query, keep_blank_values=True)),
        "default_headers": ({} if authorization is None else {"Authorization": authorization}) | dict(headers),
    }


@cache
def _import_for_requests() -> None:
    """Import what the HTTP client imports with its first request."""
    # `openai` takes httpx from `sys.modules`, where it is incomplete while another thread is importing it.
    for module in ("httpx", "anyio._backends._asyncio"):
        with contextlib.suppress(ImportError):
            importlib.import_module(module)


_NOT_IN_HEADERS = re.compile(r"[^\x20-\x7e]|\A | \Z")
"""A client of Azure that has a token in place of a key keeps words with a blank for it."""
_CODES = ("code", "status", "status_code", "error_code")
_ERROR_FIELDS = ("error_msg", "error_message", "error_code", "message", "msg", "detail")
"""Of an answer without choices."""
_NO_KEY, _NOT_FOUND, _UNREACHABLE = 401, 404, "APIConnectionError"
_ADVICE: Final[Mapping[object, str]] = {
    403: "the key may not use this model, or not from here",
    _NOT_FOUND: "check the model's name, which the provider's own list has, and base_url",
    **dict.fromkeys((301, 302, 303, 307, 308), "give base_url= or RAGSPAN_JUDGE_BASE_URL the address that is meant"),
    429: "the account has reached its rate limit or its credit; Budget(requests_per_minute=) keeps below a limit",
    _UNREACHABLE: "check base_url, the network, and that the server runs",
    "APITimeoutError": "raise timeout=, or take a faster model",
}
_BY_WORDS: Final = {
    r"context (?:length|window|size)|too long|too many tokens": (
        "lower max_context_chars, or give the server a larger context window"
    ),
    r"enable_thinking|non-stream": 'switch thinking off: extra_body={"enable_thinking": False}',
    r"stream": "ragspan reads no streams: take a model or a gateway that answers without one",
}
"""By a pattern for the endpoint's words."""
