"""An HTTP endpoint that a judge asks: answers are bounded, passing failures are retried, and secrets are not logged.

The `openai` client sends the requests, to endpoints of other protocols as well: it retries and keeps connections. The HTTP
client logs the address of each request, so it gets the host only. A transport below it adds path, query and credentials, the
latter as a header. An answer that is longer than a bound, or packed in another way than asked for, cannot be read.
"""

from __future__ import annotations

import contextlib
import importlib
import pickle
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from ragspan.addresses import basic_credentials, secrets_in_url
from ragspan.exceptions import ConfigurationError, JudgeError
from ragspan.judges.llm.client_pool import ClientPool
from ragspan.judges.llm.errors import is_outage, redacted_message

if TYPE_CHECKING:
    import ssl

    from openai import AsyncOpenAI

PATH = "/chat/completions"
MAX_BODY = 4 * 1024 * 1024
"""Unpacked bytes of an answer that are read; usual answers have some thousands."""
_GZIP = zlib.MAX_WBITS | 16
_ABOUT_THE_BODY = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})

Post: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[object]]
"""Sends a body and returns the endpoint's answer as plain JSON. It raises what the `openai` client raises."""


class Endpoint:
    """Where requests of one kind go.

    Without `client=` it has its own clients for each event loop, one for eight requests at a time; a fork gets new ones. What
    the first request needs is imported and read when the endpoint is made. Requests are made in an engine's thread, and a fork
    during an import there would leave the child with a lock that is never released.

    Args:
        base_url: the endpoint; None is OpenAI's own.
        path: follows the base in every address.
        api_key: sent as a bearer token.
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
        client: AsyncOpenAI | None = None,
        timeout: float = 30.0,
        max_retries: int = 2,
    ) -> None:
        address = Address.of(base_url, path) if base_url is not None and client is None else None
        _import_for_requests()
        certificates = _certificates() if client is None else None

        def opening() -> AsyncOpenAI:
            return _open_client(address, certificates, api_key=api_key, timeout=timeout, max_retries=max_retries)

        _ = (client or opening()).default_headers  # to name the system in them, Python starts a process
        self._copy = partial(Endpoint, base_url, path=path, api_key=api_key, timeout=timeout, max_retries=max_retries)
        self._path = path
        self._given_client = client
        self._own_clients = ClientPool(opening)
        self._secrets = list(secrets_in_url(str(client.base_url) if client is not None else base_url or ""))

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
            async with self._a_client() as client:
                # Without the client's types: with them, a third of a request's processor time goes into checking each part
                # of the schema and of the response.
                def post(body: Mapping[str, Any], client: AsyncOpenAI = client) -> Awaitable[object]:
                    return client.post(self._path, body=body, cast_to=object)

                yield post
        except openai.OpenAIError as error:
            message = redacted_message(error, sent, secrets=[getattr(client, "api_key", None), *self._secrets])
            # From None, because the cause may quote the prompt in a traceback.
            raise JudgeError(type(error).__name__, message, outage=is_outage(error)) from None
        except (ValueError, RecursionError) as error:  # a body that is not JSON, was cut, or nests too deep
            kind = type(error).__name__
            message = f"the endpoint's answer cannot be read ({kind}), or is longer than {MAX_BODY:,} bytes"
            raise JudgeError("InvalidResponse", message, outage=True) from None

    def _a_client(self) -> AbstractAsyncContextManager[AsyncOpenAI]:
        return self._own_clients.borrowed() if self._given_client is None else nullcontext(self._given_client)


@dataclass(frozen=True, slots=True)
class Address:
    """The address of an endpoint, split into what may be logged and what may not.

    Raises:
        ConfigurationError: it is no address.
    """

    origin: str
    target: str
    """Where requests go, without credentials."""
    authorization: str | None
    path: str
    """What the client adds to the origin. Requests to other addresses, after a redirect, are not changed."""

    @classmethod
    def of(cls, base_url: str, path: str) -> Address:
        try:
            parts = urlsplit(base_url)
            is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_address = False
        if not is_address:  # not shown: it may hold a password
            raise ConfigurationError(
                "base_url, RAGSPAN_JUDGE_BASE_URL or OPENAI_BASE_URL should be an address such as 'http://localhost:8000/v1'"
            )
        netloc = parts.netloc.rpartition("@")[2]
        basic = basic_credentials(parts.username or "", parts.password or "")
        return cls(
            origin=urlunsplit((parts.scheme, netloc, "", "", "")),
            target=urlunsplit((parts.scheme, netloc, parts.path.rstrip("/") + path, parts.query, "")),
            authorization=f"Basic {basic}" if netloc != parts.netloc else None,
            path=path,
        )


@cache
def _import_for_requests() -> None:
    """Import what the HTTP client imports with its first request."""
    # `openai` takes httpx from `sys.modules`, where it is incomplete while another thread is importing it.
    for module in ("httpx", "anyio._backends._asyncio"):
        with contextlib.suppress(ImportError):
            importlib.import_module(module)


def _certificates() -> ssl.SSLContext:
    """The HTTP client's default certificates. Each client would read them again, while OpenSSL holds locks."""
    import openai

    library = importlib.import_module(openai.DefaultAsyncHttpxClient.__mro__[1].__module__)  # httpx or httpx2
    made: ssl.SSLContext = library.create_ssl_context()
    return made


def _open_client(address: Address | None, certificates: ssl.SSLContext | None, **options: Any) -> AsyncOpenAI:
    """A client for the endpoint at this address; None is OpenAI's own."""
    import openai

    origin = None if address is None else address.origin
    return openai.AsyncOpenAI(base_url=origin, http_client=_http_client()(address, certificates), **options)


@cache
def _http_client() -> Any:
    """The class of the client's HTTP client (httpx's or httpx2's), with a guard around its transports."""
    import openai

    base: Any = openai.DefaultAsyncHttpxClient

    class HttpClient(base):  # type: ignore[misc]
        def __init__(self, address: Address | None, certificates: ssl.SSLContext | None) -> None:
            super().__init__(verify=certificates)
            self._address = address

        def _transport_for_url(self, url: Any) -> Any:
            """All transports come from here, those of proxies too."""
            return _Guarded(super()._transport_for_url(url), self._address)

    return HttpClient


@dataclass(frozen=True, slots=True)
class _Guarded:
    """A transport that sends requests to the whole address, and bounds answers."""

    transport: Any
    address: Address | None

    async def handle_async_request(self, request: Any) -> Any:
        request.headers["Accept-Encoding"] = "gzip"
        response = await self.transport.handle_async_request(self._aimed(request))
        try:
            body = await _read(response.stream, response.headers.get("content-encoding", "").strip().lower())
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.raw if name.lower() not in _ABOUT_THE_BODY]
        return type(response)(response.status_code, headers=headers, content=body, extensions=response.extensions)

    def _aimed(self, request: Any) -> Any:
        """The request with the whole address; after a redirect to another address, the request as it is."""
        if self.address is None or request.url != self.address.origin + self.address.path:
            return request
        headers = request.headers.copy()
        if self.address.authorization is not None:
            headers["Authorization"] = self.address.authorization
        url, extensions = self.address.target, request.extensions
        return type(request)(request.method, url, headers=headers, stream=request.stream, extensions=extensions)


async def _read(stream: AsyncIterable[bytes], encoding: str) -> bytes:
    """The body up to the bound; empty if the encoding is not one of those asked for."""
    if encoding not in {"", "identity", "gzip", "x-gzip"}:
        return b""
    unpacking = zlib.decompressobj(_GZIP) if encoding.endswith("gzip") else None
    body = bytearray()
    received = 0
    async for chunk in stream:
        received += len(chunk)
        room = MAX_BODY - len(body)
        try:
            body += chunk[:room] if unpacking is None else unpacking.decompress(chunk, room)
        except zlib.error:
            return b""
        if len(body) >= MAX_BODY or received >= MAX_BODY:
            break
    return bytes(body)
