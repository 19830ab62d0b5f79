"""An HTTP endpoint that a judge asks: answers are bounded, passing failures are retried, and secrets are not logged.

The `openai` client sends the requests, to endpoints of other protocols as well: it retries and keeps connections. The HTTP
client logs the address of each request, so credentials in an address become a header. What an answer may be is bounded in
`bounded_client`.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import pickle
import re
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qsl

from ragspan.addresses import cause_of, secrets_in_url, without_credentials
from ragspan.exceptions import ConfigurationError, JudgeError
from ragspan.judges.bounded_client import MAX_BODY, default_certificates, open_client
from ragspan.judges.llm.errors import is_outage, redacted_message, status_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI, Omit

PATH = "/chat/completions"
_REQUESTS_EACH = 8
"""Requests that one client has at a time, as long as there are fewer than `_MOST_CLIENTS`."""
_MOST_CLIENTS = 32
"""In one event loop; more requests share these."""

Post: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[object]]
"""Sends a body and returns the endpoint's answer as plain JSON. It raises what the `openai` client raises."""


class Endpoint:
    """Where requests of one kind go.

    Without `client=` it opens clients of its own. What the first request needs is imported and read when the endpoint is made.
    Requests are made in an engine's thread, and a fork during an import there would leave the child with a lock that is never
    released.

    Args:
        base_url: the endpoint; None is OpenAI's own.
        path: follows the base in every address.
        api_key: sent as a bearer token.
        key_variables: where the key may be, for the words of an error.
        headers: of each request, besides the client's; `Omit()` leaves one of these out.
        secrets: further texts that no message may hold.
        client: an `openai.AsyncOpenAI` to use as it is, in place of `base_url` and `api_key`.
        timeout: seconds for one attempt.
        max_retries: further attempts after rate limits, timeouts, and errors of the server or the connection.

    Raises:
        ConfigurationError: `base_url` is no address.
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
        timeout: float = 30.0,
        max_retries: int = 2,
    ) -> None:
        headers = headers or {}
        address = _address(base_url, headers) if base_url is not None and client is None else {}
        _import_for_requests()
        certificates = default_certificates() if client is None else None

        def opening() -> AsyncOpenAI:
            return open_client(certificates, **address, api_key=api_key, timeout=timeout, max_retries=max_retries)

        _ = (client or opening()).default_headers  # to name the system in them, Python starts a process
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
        self._key_variables = ("RAGSPAN_JUDGE_API_KEY", *key_variables)
        self._given_client = client
        self._clients = ClientPool(opening)
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
        """A function that posts. An error inside becomes a `JudgeError` that repeats none of the texts in `sent`.

        Raises:
            JudgeError: the endpoint refuses, cannot be reached, or gives an answer that cannot be read.
        """
        import openai

        client = None
        try:
            given = self._given_client
            async with self._clients.borrowed() if given is None else nullcontext(given) as client:
                # Without the client's types: with them, a third of a request's processor time goes into checking each part
                # of the schema and of the response.
                async def post(body: Mapping[str, Any], client: AsyncOpenAI = client) -> object:
                    return _without_error(await client.post(self._path, body=body, cast_to=object))

                yield post
        except (openai.OpenAIError, InvalidResponseError) as error:
            message = redacted_message(error, sent, secrets=[getattr(client, "api_key", None), *self._secrets])
            # From None, because the cause may quote the prompt in a traceback.
            kind = "InvalidResponse" if isinstance(error, InvalidResponseError) else type(error).__name__
            advice = _advice(error, message, self._path, self._key_variables)
            raise JudgeError(kind, message + advice, outage=is_outage(error), status=status_of(error)) from None
        except (ValueError, RecursionError) as error:  # a body that is not JSON, was cut, or nests too deep
            kind = type(error).__name__
            message = (
                f"the endpoint's answer cannot be read ({kind}), or is longer than {MAX_BODY:,} bytes: check base_url"
            )
            raise JudgeError("InvalidResponse", message, outage=True) from None


@dataclass(slots=True, eq=False)
class _Open:
    """A client that is open."""

    client: AsyncOpenAI
    lifetime: AsyncGenerator[AsyncOpenAI, None]
    loop: asyncio.AbstractEventLoop
    pid: int
    requests: int = 0


class ClientPool:
    """Clients with their open connections: one event loop each, and each for a few requests at a time.

    The pool of an HTTP client looks at all of its connections twice for each request, and asks the operating system about
    those that are idle. With 64 requests at a time this took a third of the processor time; with eight it takes almost none.

    Guarantees:
    - A client is only used in the loop, and in the process, that it was opened in; the child of a fork opens its own.
    - It is closed in its loop: when the pool is collected, or when the loop shuts down its asynchronous generators, as
      `asyncio.run` does at its end. Nobody has to close anything.
    - The clients of a closed loop are released when another client is opened.

    The pool has no lock, which a fork could leave held in the child for ever: only a loop's own thread uses its clients.

    Args:
        opening: opens a client, without waiting for anything.
    """

    def __init__(self, opening: Callable[[], AsyncOpenAI]) -> None:
        self._opening = opening
        self._open: dict[_Open, None] = {}
        weakref.finalize(self, _close_soon, self._open).atexit = False

    @asynccontextmanager
    async def borrowed(self) -> AsyncIterator[AsyncOpenAI]:
        """A client of the running loop for one request: the first that has room, a new one, or the one with most room."""
        loop, pid = asyncio.get_running_loop(), os.getpid()
        clients = [one for one in list(self._open) if one.loop is loop and one.pid == pid]
        one = next((one for one in clients if one.requests < _REQUESTS_EACH), None)
        if one is None and len(clients) < _MOST_CLIENTS:
            for known in (self._open, _alive):
                for gone in [one for one in list(known) if one.loop.is_closed()]:
                    known.pop(gone, None)
            lifetime = _lifetime(self._opening)
            one = _Open(await anext(lifetime), lifetime, loop, pid)
            self._open[one] = _alive[one] = None
        one = one or min(clients, key=lambda one: one.requests)
        one.requests += 1
        try:
            yield one.client
        finally:
            one.requests -= 1


async def _lifetime(opening: Callable[[], AsyncOpenAI]) -> AsyncGenerator[AsyncOpenAI, None]:
    """Yields the client once and closes it when it is closed itself, which every loop does with its generators."""
    async with opening() as client:
        yield client


def _close_soon(opened: Iterable[_Open]) -> None:
    for one in opened:
        if one.pid == os.getpid():
            with contextlib.suppress(RuntimeError):  # the loop is closed
                one.loop.call_soon_threadsafe(_start_closing, one)


def _start_closing(one: _Open) -> None:
    closing = one.loop.create_task(_close(one))
    _closing.add(closing)
    closing.add_done_callback(_closing.discard)


async def _close(one: _Open) -> None:
    """Close it. If the loop ends and cancels this before it starts, the loop closes it."""
    await one.lifetime.aclose()
    _alive.pop(one, None)


_closing: set[asyncio.Task[None]] = set()
_alive: dict[_Open, None] = {}
"""What is open. If one of these were collected, its loop would begin to close it: perhaps too late to finish before the loop
ends, and perhaps in a forked child, which must not."""


class InvalidResponseError(Exception):
    """An error that a gateway reports with status 200."""

    def __init__(self, body: object) -> None:
        super().__init__("the endpoint reports an error")
        self.body = body
        self.code = body.get("code") if isinstance(body, Mapping) else None


def _without_error(reply: object) -> object:
    if isinstance(reply, Mapping) and reply.get("error"):
        raise InvalidResponseError(reply["error"])
    return reply


def _advice(error: Exception, message: str, path: str, key_variables: Sequence[str]) -> str:
    """What to do about an error, where the endpoint's words do not say it."""
    advice = _ADVICE.get(getattr(error, "status_code", None) or type(error).__name__)
    if advice == _ADVICE[_UNAUTHORIZED]:
        advice += " or ".join(key_variables)
    if advice == _ADVICE[_NOT_FOUND]:
        advice += ", which usually ends in /v1" if path == PATH else f", to which {path} is added"
    if advice == _ADVICE[_UNREACHABLE] and (cause := cause_of(error)):
        advice = f"{cause}; {advice}"
    if advice is None and _ABOUT_LENGTH.search(message):
        advice = "lower max_context_chars, or give the server a larger context window"
    return f" ({advice})" if advice else ""


_UNAUTHORIZED, _NOT_FOUND, _UNREACHABLE = 401, 404, "APIConnectionError"
_ADVICE: Mapping[object, str] = {
    _UNAUTHORIZED: "check the key: api_key=, ",
    403: "the key may not use this model, or not from here",
    _NOT_FOUND: "check the model's name, and base_url",
    **dict.fromkeys((301, 302, 303, 307, 308), "give base_url= or RAGSPAN_JUDGE_BASE_URL the address that is meant"),
    429: "the account has reached its rate limit or its credit; Budget(requests_per_minute=) keeps below a limit",
    _UNREACHABLE: "check base_url, the network, and that the server runs",
    "APITimeoutError": "raise timeout=, or take a faster model",
}
_ABOUT_LENGTH = re.compile(r"context (?:length|window|size)|too long|too many tokens", re.IGNORECASE)


def _address(base_url: str, headers: Mapping[str, str | Omit]) -> dict[str, Any]:
    """The client's options for this address; credentials become a header.

    Raises:
        ConfigurationError: it is no address.
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
