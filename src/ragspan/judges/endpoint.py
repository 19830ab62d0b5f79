"""An HTTP endpoint that a judge asks: answers are bounded, passing failures are retried, and secrets are not logged.

The `openai` client sends the requests, to endpoints of other protocols as well: it retries and keeps connections. The HTTP
client logs the address of each request, so credentials in an address become a header. What an answer may be is bounded in
`bounded_client`.
"""

from __future__ import annotations

import contextlib
import importlib
import pickle
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qsl

from ragspan.addresses import cause_of, secrets_in_url, without_credentials
from ragspan.arguments import wrong
from ragspan.exceptions import ConfigurationError, JudgeError
from ragspan.judges.bounded_client import MAX_BODY, default_certificates, open_http_client
from ragspan.judges.client_pool import ClientPool
from ragspan.judges.given_client import GivenClient, brings_http_client
from ragspan.judges.llm.capabilities import EndpointCapabilities, EndpointHabits
from ragspan.judges.llm.errors import is_outage, redacted_message, status_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI, Omit

PATH = "/chat/completions"
TIMEOUT = 30.0
"""Seconds for one attempt."""
MAX_RETRIES = 2
"""Further attempts of the client; see docs/judges.md for the other layers of retries."""


class Post(Protocol):
    """Sends requests, and says what came of them."""

    async def __call__(self, body: Mapping[str, Any]) -> object:
        """Send a body, and return the endpoint's answer as plain JSON. It raises what the `openai` client raises."""
        ...

    def error_text(self, error: Exception) -> str:
        """The endpoint's words, without keys and texts of the request."""
        ...


class Endpoint:
    """Where requests of one kind go.

    It opens clients of its own, from the options of `client=` if there is one. What the first request needs is imported and
    read when the endpoint is made. Requests are made in an engine's thread, and a fork during an import there would leave the
    child with a lock that is never released.

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
        if client is not None:
            _require_asynchronous(client)
        own = {"api_key": api_key and api_key.strip(), "timeout": timeout, "max_retries": max_retries}
        headers = headers or {}
        address = _address(base_url, headers) if base_url is not None and client is None else {}
        self._clients = _clients_for(client, own | address)
        self._copy = partial(
            Endpoint,
            base_url,
            path=path,
            api_key=api_key,
            key_variables=key_variables,
            headers=headers,
            secrets=secrets,
            timeout=timeout,
            max_retries=max_retries,
        )
        self._path = path
        self._key_advice = " or ".join((f"{_ADVICE[_NO_KEY]}RAGSPAN_JUDGE_API_KEY", *key_variables))
        self._given_client = client
        address_used = str(client.base_url) if client is not None else base_url or ""
        self._secrets = [*secrets_in_url(address_used), *secrets]

    def __reduce__(self) -> tuple[partial[Endpoint], tuple[()]]:
        """The same endpoint for another process, which opens its own connections.

        Raises:
            PicklingError: the endpoint has a given client, which belongs to this process.
        """
        if self._given_client is not None:
            raise pickle.PicklingError(
                "a judge with client= cannot be sent to another process: give it base_url= and api_key= in place of client="
            )
        return self._copy, ()

    @asynccontextmanager
    async def asking(self, sent: Iterable[str]) -> AsyncIterator[Post]:
        """What posts. An error inside becomes a `JudgeError` that repeats none of the texts in `sent`.

        Raises:
            JudgeError: the endpoint refuses, cannot be reached, or gives an answer that cannot be read; or the key or the
                client cannot be used.
        """
        import openai

        post: _Post | None = None
        try:
            async with self._clients.borrowed() as client:
                post = _Post(client, self._path, sent, self._secrets)
                _require_sendable(getattr(client, "api_key", None), self._key_advice)
                yield post
        except (openai.OpenAIError, InvalidResponseError) as error:
            message = str(error) if post is None else post.error_text(error)
            # From None, because the cause may quote the prompt in a traceback.
            kind = "InvalidResponse" if isinstance(error, InvalidResponseError) else type(error).__name__
            advice = _advice(error, message, self._path, self._key_advice)
            raise JudgeError(kind, message + advice, outage=is_outage(error), status=status_of(error)) from None
        except (ValueError, RecursionError) as error:  # a body that is not JSON, was cut, or nests too deep
            kind = type(error).__name__
            message = (
                f"the endpoint's answer cannot be read ({kind}), or is longer than {MAX_BODY:,} bytes: check base_url"
            )
            raise JudgeError("InvalidResponse", message, outage=True) from None


async def post_what_it_takes(
    post: Post, habits: EndpointHabits, body: Callable[[EndpointCapabilities], Mapping[str, Any]]
) -> object:
    """The answer to a request. What the endpoint refuses of it is left out, now and later.

    Args:
        post: of the endpoint.
        habits: of the endpoint.
        body: makes the request's body of what the endpoint takes.
    """
    import openai

    attempt = habits.attempt()
    while True:
        fields = body(attempt.capabilities)
        try:
            reply = await post(fields)
        except (openai.APIStatusError, InvalidResponseError) as error:
            if not attempt.goes_on_without(error, fields, post.error_text):
                raise
        else:
            attempt.ended_well()
            return reply


class _Post:
    """Sends requests with one client."""

    def __init__(self, client: AsyncOpenAI, path: str, sent: Iterable[str], secrets: Sequence[object]) -> None:
        self._client = client
        self._path = path
        self._sent = sent
        self._secrets = secrets

    async def __call__(self, body: Mapping[str, Any]) -> object:
        # Without the client's types: with them, a third of a request's processor time goes into checking each part of the
        # schema and of the response.
        reply = await self._client.post(self._path, body=body, cast_to=object)
        if (error := _error_in(reply)) is not None:
            raise InvalidResponseError(error)
        return reply

    def error_text(self, error: Exception) -> str:
        return redacted_message(error, self._sent, secrets=[getattr(self._client, "api_key", None), *self._secrets])


def _require_sendable(key: object, advice: str) -> None:
    """Raise a `JudgeError` if HTTP cannot carry the key, which would look like an endpoint that cannot be reached."""
    odd = _NOT_IN_HEADERS.search(key) if isinstance(key, str) else None
    if odd is not None:
        message = f"the key cannot be sent, because it holds a character (U+{ord(odd[0]):04X}) that no key has"
        raise JudgeError("AuthenticationError", f"{message}: copy it again, and {advice}", outage=True, status=_NO_KEY)


_NOT_IN_HEADERS = re.compile(r"[^\x20-\x7e]|\A | \Z")
"""A client of Azure that has a token in place of a key keeps words with a blank for it."""


def _clients_for(client: AsyncOpenAI | None, options: Mapping[str, Any]) -> ClientPool | GivenClient:
    """Opens clients with these options, or with those of the given one, or lends that one."""
    import openai

    if client is not None and brings_http_client(client):
        return GivenClient(client)
    certificates = default_certificates()

    def opening() -> AsyncOpenAI:
        http_client = open_http_client(certificates)
        return (
            client.copy(http_client=http_client) if client else openai.AsyncOpenAI(http_client=http_client, **options)
        )

    _ = opening().default_headers  # to name the system in them, Python starts a process
    return ClientPool(opening)


def _require_asynchronous(client: object) -> None:
    import openai

    if not isinstance(client, openai.AsyncOpenAI):
        raise wrong(
            "client", client, "an openai.AsyncOpenAI or openai.AsyncAzureOpenAI, because judges wait in an event loop"
        )


class InvalidResponseError(Exception):
    """An error that a gateway reports with status 200."""

    def __init__(self, body: object) -> None:
        super().__init__("the endpoint reports an error")
        self.body = body
        code = next((body[name] for name in _CODES if body.get(name)), None) if isinstance(body, Mapping) else None
        self.code = int(code) if isinstance(code, str) and code.isdecimal() else code


_CODES = ("code", "status", "status_code", "error_code")


def _error_in(reply: object) -> object | None:
    """What an answer with status 200 says of an error; None if it is none."""
    if isinstance(reply, list) and len(reply) == 1:  # Google
        reply = reply[0]
    if not isinstance(reply, Mapping):
        return None
    named = next((reply[name] for name in ("error", "errors") if reply.get(name)), None)
    if named is not None or reply.get("choices"):
        return named
    status: object = reply.get("base_resp")  # of MiniMax, which has it in good answers, too
    if isinstance(status, Mapping) and status.get("status_code"):
        return status
    return reply if any(reply.get(name) for name in _ERROR_FIELDS) else None


_ERROR_FIELDS = ("error_msg", "error_message", "error_code", "message", "msg", "detail")
"""Of an answer without choices."""


def _advice(error: Exception, message: str, path: str, about_key: str) -> str:
    """What to do about an error, where the endpoint's words do not say it."""
    advice = _ADVICE.get(getattr(error, "status_code", None) or type(error).__name__)
    if advice == _ADVICE[_NO_KEY]:
        advice = about_key
    if advice == _ADVICE[_NOT_FOUND]:
        advice += _OF_CHAT if path == PATH else f", to which {path} is added"
    if advice == _ADVICE[_UNREACHABLE] and (cause := cause_of(error)):
        advice = f"{cause}; {advice}"
    if advice is None:
        advice = next(
            (words for pattern, words in _BY_WORDS.items() if re.search(pattern, message, re.IGNORECASE)), None
        )
    return f" ({advice})" if advice else ""


_OF_CHAT = ", which usually ends in /v1: `ragspan judges` shows the address"
_NO_KEY, _NOT_FOUND, _UNREACHABLE = 401, 404, "APIConnectionError"
_ADVICE: Mapping[object, str] = {
    _NO_KEY: "check the key: api_key=, ",
    403: "the key may not use this model, or not from here",
    _NOT_FOUND: "check the model's name, which the provider's own list has, and base_url",
    **dict.fromkeys((301, 302, 303, 307, 308), "give base_url= or RAGSPAN_JUDGE_BASE_URL the address that is meant"),
    429: "the account has reached its rate limit or its credit; Budget(requests_per_minute=) keeps below a limit",
    _UNREACHABLE: "check base_url, the network, and that the server runs",
    "APITimeoutError": "raise timeout=, or take a faster model",
}
_BY_WORDS = {
    r"context (?:length|window|size)|too long|too many tokens": (
        "lower max_context_chars, or give the server a larger context window"
    ),
    r"enable_thinking|non-stream": 'switch thinking off: extra_body={"enable_thinking": False}',
    r"stream": "ragspan reads no streams: take a model or a gateway that answers without one",
}
"""By a pattern for the endpoint's words."""


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
