"""An HTTP endpoint that a judge asks: passing failures are retried, open connections are shared, and secrets are not logged.

The `openai` client sends the requests, to endpoints of other protocols as well: it retries and keeps connections. The HTTP
client logs the address of each request, so credentials in an address become a header. No redirect is followed: the texts of a request
are users'.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import pickle
import re
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from ragspan.addresses import cause_of, secrets_in_url, without_credentials
from ragspan.arguments import instance
from ragspan.exceptions import ConfigurationError, JudgeError
from ragspan.judges.llm.capabilities import Attempt, EndpointCapabilities, EndpointHabits
from ragspan.judges.llm.errors import is_outage, redacted_message, status_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI, Omit

PATH = "/chat/completions"
TIMEOUT = 30.0
"""Seconds for one attempt."""
MAX_RETRIES = 2
"""Further attempts of the client; see docs/judges.md for the other layers of retries."""
_REQUESTS_EACH = 8
"""Requests that one client has at a time, as long as there are fewer than `_MOST_CLIENTS`."""
_MOST_CLIENTS = 32
"""In one event loop; more requests share these."""
_NO_KEY, _NOT_FOUND, _UNREACHABLE = 401, 404, "APIConnectionError"
_ADVICE: Final[Mapping[object, str]] = {
    403: "the key may not use this model, or not from here",
    _NOT_FOUND: "check the model's name, which the provider's own list has, and base_url",
    **dict.fromkeys((301, 302, 303, 307, 308), "give base_url= or RAGSPAN_JUDGE_BASE_URL the address that is meant"),
    429: "the account has reached its rate limit or its credit; Budget(requests_per_minute=) keeps below a limit",
    _UNREACHABLE: "check base_url, the network, that the server runs, and that the key holds no odd character",
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


class Endpoint:
    """Where requests of one kind go, and what it takes; the arguments are those of `OpenAIJudge`.

    It opens clients of its own, from the options of `client=` if there is one. What the first request needs is imported and
    read when the endpoint is made. Requests are made in an engine's thread, and a fork during an import there would leave the
    child with a lock that is never released. It pickles, unless it has a given client: another process opens its own connections.

    `path` follows the base in every address; `key_variables` may have the key, for the words of an error; a header that is `Omit()` is
    left out; no message may hold one of the `secrets`.
    """

    def __init__(
        self,
        base_url: str | None,
        *,
        path: str = PATH,
        takes: EndpointCapabilities | None = None,
        api_key: str | None = None,
        key_variables: Sequence[str] = ("OPENAI_API_KEY",),
        headers: Mapping[str, str | Omit] | None = None,
        secrets: Sequence[str] = (),
        client: AsyncOpenAI | None = None,
        timeout: float = TIMEOUT,
        max_retries: int = MAX_RETRIES,
    ) -> None:
        # `openai` takes httpx from `sys.modules`, where it is incomplete while another thread is importing it.
        for module in ("httpx", "anyio._backends._asyncio"):
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
        import openai

        words = "an openai.AsyncOpenAI or openai.AsyncAzureOpenAI, because judges wait in an event loop"
        instance(openai.AsyncOpenAI, words).or_none().check("client", client)
        options: dict[str, Any] = {
            "api_key": api_key and api_key.strip(),
            "timeout": timeout,
            "max_retries": max_retries,
        }
        if base_url is not None and client is None:
            try:
                parts, authorization = without_credentials(base_url)
            except ValueError:
                variables = "base_url, RAGSPAN_JUDGE_BASE_URL or OPENAI_BASE_URL"
                example = "http://localhost:8000/v1"
                raise ConfigurationError(f"{variables} should be an address such as {example!r}") from None
            options["base_url"] = parts._replace(query="").geturl()
            options["default_query"] = dict(parse_qsl(parts.query, keep_blank_values=True))
            options["default_headers"] = {"Authorization": authorization} if authorization is not None else {}
            options["default_headers"] |= headers or {}
        self.habits = EndpointHabits(takes)
        self._clients = _ClientPool(client, options)
        again: dict[str, Any] = {"path": path, "takes": takes, "api_key": api_key, "key_variables": key_variables}
        again |= {"headers": headers, "secrets": secrets, "timeout": timeout, "max_retries": max_retries}
        self._again = None if client is not None else partial(Endpoint, base_url, **again)
        self._path = path
        self._key_advice = "check the key: " + " or ".join(("RAGSPAN_JUDGE_API_KEY", *key_variables, "api_key="))
        address_used = str(client.base_url) if client is not None else base_url or ""
        self._secrets: list[object] = [*secrets_in_url(address_used), *secrets]

    def __reduce__(self) -> tuple[partial[Endpoint], tuple[()]]:
        if self._again is None:
            raise pickle.PicklingError(
                "a judge with client= cannot be sent to another process: give it base_url= and api_key= in place of client="
            )
        return self._again, ()

    async def post(self, body: Callable[[EndpointCapabilities], Mapping[str, Any]], texts: Sequence[str]) -> object:
        """The answer to a request, as plain JSON; `body` makes it of what the endpoint takes, and no error repeats the `texts`.

        What the endpoint refuses of it is left out, now and later. Raises `JudgeError` if it refuses or cannot be reached, if its answer
        cannot be read, or if the client cannot be used.
        """
        import openai

        secrets = self._secrets

        def say(error: Exception) -> str:
            return redacted_message(error, texts, secrets=secrets)

        try:
            async with self._clients.borrowed() as client:
                secrets, attempt = [getattr(client, "api_key", None), *self._secrets], Attempt(self.habits)
                while True:
                    fields = body(attempt.capabilities)
                    try:
                        # Without the client's types: with them, a third of a request's processor time goes into checking
                        # each part of the schema and of the response.
                        reply: object = await client.post(self._path, body=fields, cast_to=object)
                        _raise_reported(reply)
                    except (openai.APIStatusError, _ReportedError) as error:
                        if not attempt.goes_on_without(error, fields):
                            raise
                    else:
                        attempt.ended_well()
                        return reply
        # From None, because the cause may quote the prompt in a traceback.
        except (openai.OpenAIError, _ReportedError) as error:
            kind = "InvalidResponse" if isinstance(error, _ReportedError) else type(error).__name__
            words = self._with_advice(error, say(error))
            raise JudgeError(kind, words, outage=is_outage(error), status=status_of(error)) from None
        except UnicodeEncodeError:
            message = (
                f"the request cannot be sent, because a header has a sign that HTTP does not know: {self._key_advice}"
            )
            raise JudgeError("InvalidRequest", message, outage=True) from None
        except (ValueError, RecursionError) as error:  # a body that is not JSON, or nests too deep
            message = f"the endpoint's answer cannot be read ({type(error).__name__}): check base_url"
            raise JudgeError("InvalidResponse", message, outage=True) from None
        except RuntimeError as error:
            message = f"the judge's client cannot be used ({error}): it is closed, or its http_client= belongs to another event loop"
            raise JudgeError("ClientOfAnotherLoop", f"{message}; give a client without http_client=") from None

    def _with_advice(self, error: Exception, message: str) -> str:
        """The message and what to do about the error, where the endpoint's words do not say it."""
        kind = getattr(error, "status_code", None) or type(error).__name__
        by_words = (words for pattern, words in _BY_WORDS.items() if re.search(pattern, message, re.IGNORECASE))
        advice = self._key_advice if kind == _NO_KEY else _ADVICE.get(kind) or next(by_words, None)
        if kind == _NOT_FOUND:
            chat = ", which usually ends in /v1: `ragspan judges` shows the address"
            advice = f"{advice}{chat if self._path == PATH else f', to which {self._path} is added'}"
        if kind == _UNREACHABLE and (cause := cause_of(error)):
            advice = f"{cause}; {advice}"
        return f"{message} ({advice})" if advice else message


class _ReportedError(Exception):
    """An error that a gateway reports with status 200."""

    def __init__(self, body: object) -> None:
        super().__init__("the endpoint reports an error")
        self.body = body
        code = body.get("code") or body.get("status") if isinstance(body, Mapping) else None
        self.code = int(code) if isinstance(code, str) and code.isdecimal() else code


def _raise_reported(reply: object) -> None:
    only = reply[0] if isinstance(reply, list) and len(reply) == 1 else reply  # Google
    if isinstance(only, Mapping) and (reported := only.get("error") or only.get("errors")):
        raise _ReportedError(reported)


@dataclass(slots=True, eq=False)
class _Open:
    """A client that is open."""

    client: AsyncOpenAI
    lifetime: AsyncGenerator[AsyncOpenAI, None]
    loop: asyncio.AbstractEventLoop
    pid: int
    requests: int = 0


class _ClientPool:
    """Clients with their open connections: one event loop and process each, and each for a few requests at a time.

    The pool of an HTTP client looks at all of its connections twice for each request: with 64 requests at a time this took a third of
    the processor time; with eight it takes almost none. A client is closed in its loop: when the pool is collected, or when the loop
    shuts down its asynchronous generators, as `asyncio.run` does at its end. It has no lock, which a fork could leave held: only a loop's
    own thread uses its clients. A given client with an HTTP client of its own is lent as it is.
    """

    def __init__(self, client: AsyncOpenAI | None, options: dict[str, Any]) -> None:
        import openai

        is_own = client is None or type(getattr(client, "_client", None)).__name__ == "AsyncHttpxClientWrapper"
        self._lent = None if is_own else client
        # Each client would read the certificates again, while OpenSSL holds locks.
        library = importlib.import_module(openai.DefaultAsyncHttpxClient.__mro__[1].__module__)
        verify: Any = library.create_ssl_context() if is_own else None

        def opening() -> AsyncOpenAI:
            http = openai.DefaultAsyncHttpxClient(verify=verify, follow_redirects=False)
            return client.copy(http_client=http) if client else openai.AsyncOpenAI(http_client=http, **options)

        if is_own:
            _ = opening().default_headers  # to name the system in them, Python starts a process
        self._opening = opening
        self._open: dict[_Open, None] = {}
        weakref.finalize(self, _close_soon, self._open).atexit = False

    @asynccontextmanager
    async def borrowed(self) -> AsyncIterator[AsyncOpenAI]:
        """A client of the running loop for one request: the first that has room, a new one, or the one with most room."""
        if self._lent is not None:
            yield self._lent
            return
        loop, pid = asyncio.get_running_loop(), os.getpid()
        clients = [one for one in list(self._open) if one.loop is loop and one.pid == pid]
        one = min(clients, key=lambda one: one.requests >= _REQUESTS_EACH and one.requests, default=None)
        if one is None or (one.requests >= _REQUESTS_EACH and len(clients) < _MOST_CLIENTS):
            for known in (self._open, _alive):
                for gone in [one for one in list(known) if one.loop.is_closed()]:
                    known.pop(gone, None)
            lifetime = _lifetime(self._opening)
            one = _Open(await anext(lifetime), lifetime, loop, pid)
            self._open[one] = _alive[one] = None
        one.requests += 1
        try:
            yield one.client
        finally:
            one.requests -= 1


async def _lifetime(opening: Callable[[], AsyncOpenAI]) -> AsyncGenerator[AsyncOpenAI, None]:
    async with opening() as client:
        yield client


def _close_soon(opened: Iterable[_Open]) -> None:
    async def close(one: _Open) -> None:
        """If the loop ends and cancels this before it starts, the loop closes it."""
        await one.lifetime.aclose()
        _alive.pop(one, None)

    def start(one: _Open) -> None:
        closing = one.loop.create_task(close(one))
        _closing.add(closing)
        closing.add_done_callback(_closing.discard)

    for one in opened:
        if one.pid == os.getpid():
            with contextlib.suppress(RuntimeError):  # the loop is closed
                one.loop.call_soon_threadsafe(start, one)


_closing: set[asyncio.Task[None]] = set()
_alive: dict[_Open, None] = {}
"""What is open. If one of these were collected, its loop would begin to close it: perhaps too late to finish before the loop
ends, and perhaps in a forked child, which must not."""
