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
import re
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from ragspan.addresses import cause_of, secrets_in_url, without_credentials
from ragspan.exceptions import ConfigurationError, JudgeError
from ragspan.judges.judge_protocols import ChatMessage, Completion
from ragspan.judges.llm.capabilities import EndpointCapabilities
from ragspan.judges.llm.replies import read_completions
from ragspan.judges.llm.requests import is_outage, redacted_message, status_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI, Omit

PATH = "/chat/completions"
TIMEOUT = 30.0
"""Seconds for one attempt."""
MAX_RETRIES = 2
"""Further attempts of the client; see docs/reference/providers.md for the other layers of retries."""
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
_TOO_LONG = re.compile(r"context (?:length|window|size)|too long|too many tokens", re.IGNORECASE)


class Endpoint:
    """Where requests of one kind go, and what it takes; the arguments are those of `OpenAIJudge`.

    What the first request needs is imported and read when the endpoint is made. Requests are made in an engine's thread, and a fork
    during an import there would leave the child with a lock that is never released.

    `path` follows the base in every address; `key_variables` may have the key, for the words of an error; a header that is `Omit()` is
    left out; no message may hold one of the `secrets`.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | Callable[[], Awaitable[str]],
        path: str = PATH,
        takes: EndpointCapabilities | None = None,
        key_variables: Sequence[str] = (),
        headers: Mapping[str, str | Omit] | None = None,
        secrets: Sequence[str] = (),
        timeout: float = TIMEOUT,
        max_retries: int = MAX_RETRIES,
    ) -> None:
        # `openai` takes httpx from `sys.modules`, where it is incomplete while another thread is importing it.
        for module in ("httpx", "anyio._backends._asyncio"):
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
        import openai

        try:
            parts, authorization = without_credentials(base_url)
        except ValueError:
            variables, example = "base_url, RAGSPAN_JUDGE_BASE_URL or OPENAI_BASE_URL", "http://localhost:8000/v1"
            raise ConfigurationError(f"{variables} should be an address such as {example!r}") from None
        options: dict[str, Any] = {
            "base_url": parts._replace(query="").geturl(),
            "default_query": dict(parse_qsl(parts.query, keep_blank_values=True)),
            "default_headers": {**({"Authorization": authorization} if authorization else {}), **(headers or {})},
            "api_key": api_key.strip() if isinstance(api_key, str) else "made-for-each-request",
            "timeout": timeout,
            "max_retries": max_retries,
        }
        # Each client would read the certificates again, while OpenSSL holds locks.
        library = importlib.import_module(openai.DefaultAsyncHttpxClient.__mro__[1].__module__)
        verify: Any = library.create_ssl_context()

        def opening() -> AsyncOpenAI:
            http = openai.DefaultAsyncHttpxClient(verify=verify, follow_redirects=False)
            return openai.AsyncOpenAI(http_client=http, **options)

        async def lifetime() -> AsyncGenerator[AsyncOpenAI, None]:
            async with opening() as client:
                yield client

        _ = opening().default_headers  # to name the system in them, Python starts a process
        self.capabilities = takes or EndpointCapabilities()
        """What it is known to take."""
        self._lifetime = lifetime
        self._path = path
        self._key = api_key
        self._key_advice = "check the key: " + " or ".join(("RAGSPAN_JUDGE_API_KEY", *key_variables, "api_key="))
        self._secrets: list[object] = [*secrets_in_url(base_url), *secrets]

    async def post(self, body: Callable[[EndpointCapabilities], Mapping[str, Any]], texts: Sequence[str]) -> object:
        """The answer to a request, as plain JSON; `body` makes it of what the endpoint takes, and no error repeats the `texts`.

        What the endpoint refuses of it is left out, now and later. Raises `JudgeError` if it refuses or cannot be reached, or if its answer
        cannot be read.
        """
        import openai

        taken = self.capabilities
        key = self._key if isinstance(self._key, str) else await self._key()
        made: Any = {} if isinstance(self._key, str) else {"headers": {"Authorization": f"Bearer {key}"}}
        try:
            async with self._borrowed() as client:
                while True:
                    fields = body(taken)
                    try:
                        # Without the client's types: with them, a third of a request's processor time goes into checking
                        # each part of the schema and of the response.
                        reply: object = await client.post(self._path, body=fields, cast_to=object, options=made)
                        only = reply[0] if isinstance(reply, list) and len(reply) == 1 else reply  # Google
                        if isinstance(only, Mapping) and (reported := only.get("error") or only.get("errors")):
                            raise _ReportedError(reported)  # noqa: TRY301 - it is handled as an error of the client is
                    except (openai.APIStatusError, _ReportedError) as error:
                        simpler = taken.after(error, fields)
                        if simpler is None:
                            raise
                        taken = simpler
                    else:
                        self.capabilities = self.capabilities.merged_with(taken)
                        return reply
        # From None, because the cause may quote the prompt in a traceback.
        except (openai.OpenAIError, _ReportedError) as error:
            kind = "InvalidResponse" if isinstance(error, _ReportedError) else type(error).__name__
            words = self._with_advice(error, redacted_message(error, texts, secrets=[key, *self._secrets]))
            raise JudgeError(kind, words, outage=is_outage(error), status=status_of(error)) from None
        # A header of other signs; a body that is not JSON, or nests too deep.
        except (ValueError, RecursionError) as error:
            words = f"the request cannot be sent, or its answer cannot be read ({type(error).__name__})"
            raise JudgeError("InvalidResponse", f"{words}: check base_url and the key", outage=True) from None

    def _with_advice(self, error: Exception, message: str) -> str:
        """The message and what to do about the error, where the endpoint's words do not say it."""
        kind = getattr(error, "status_code", None) or type(error).__name__
        advice = self._key_advice if kind == _NO_KEY else _ADVICE.get(kind)
        if kind == _NOT_FOUND:
            chat = ", which usually ends in /v1: `ragspan judges` shows the address"
            advice = f"{advice}{chat if self._path == PATH else f', to which {self._path} is added'}"
        elif kind == _UNREACHABLE and (cause := cause_of(error)):
            advice = f"{cause}; {advice}"
        elif advice is None and _TOO_LONG.search(message):
            advice = "lower max_context_chars, or give the server a larger context window"
        return f"{message} ({advice})" if advice else message

    @asynccontextmanager
    async def _borrowed(self) -> AsyncIterator[AsyncOpenAI]:
        """A client of the running loop for one request: the first that has room, a new one, or the one with most room.

        The pool of an HTTP client looks at all of its connections twice for each request: with 64 requests at a time this took a
        third of the processor time; with eight it takes almost none. No lock, which a fork could leave held, is needed: only a loop's own
        thread uses its clients.
        """
        loop, pid = asyncio.get_running_loop(), os.getpid()
        here = [one for one in list(_open) if one.loop is loop and one.pid == pid]
        clients = [one for one in here if one.endpoint() is self]
        one = min(clients, key=lambda one: one.requests >= _REQUESTS_EACH and one.requests, default=None)
        if one is None or (one.requests >= _REQUESTS_EACH and len(clients) < _MOST_CLIENTS):
            _open[:] = [one for one in _open if not one.loop.is_closed()]
            lifetime = self._lifetime()
            _open.append(one := _Open(await anext(lifetime), lifetime, weakref.ref(self), loop, pid))
            for unused in [each for each in here if each.endpoint() is None]:
                _open.remove(unused)
                await unused.lifetime.aclose()
        one.requests += 1
        try:
            yield one.client
        finally:
            one.requests -= 1


class ChatEndpoint(Endpoint):
    """A `ChatClient` for one model of an endpoint; the options are those of `Endpoint`, `extra_body` is that of `OpenAIJudge`."""

    def __init__(self, base_url: str, model: str, extra_body: Mapping[str, Any], **options: Any) -> None:
        super().__init__(base_url, **options)
        self._model = model
        self._extra_body = dict(extra_body)

    async def complete(
        self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any], n: int, temperature: float
    ) -> list[Completion]:
        def body(taken: EndpointCapabilities) -> dict[str, Any]:
            parameters = taken.parameters(schema=schema, n=n, temperature=temperature)
            return {"model": self._model, "messages": messages} | taken.kept(parameters | self._extra_body)

        return read_completions(await self.post(body, [message["content"] for message in messages]))


class _ReportedError(Exception):
    """An error that a gateway reports with status 200."""

    def __init__(self, body: object) -> None:
        super().__init__("the endpoint reports an error")
        self.body = body
        code = body.get("code") or body.get("status") if isinstance(body, Mapping) else None
        self.code = int(code) if isinstance(code, str) and code.isdecimal() else code


@dataclass(slots=True, eq=False)
class _Open:
    """A client that is open: until its loop shuts its asynchronous generators down, or another opens there and its endpoint is gone."""

    client: AsyncOpenAI
    lifetime: AsyncGenerator[AsyncOpenAI, None]
    endpoint: weakref.ref[Endpoint]
    loop: asyncio.AbstractEventLoop
    pid: int
    requests: int = 0


_open: list[_Open] = []
"""Of all endpoints. Of a client that was collected, the loop would begin to close it: perhaps too late to finish before it ends."""
