"""The HTTP clients that requests to judges go through: what an answer may be, and how open clients are shared.

Guarantees:
- An answer takes no more than `MAX_BODY` bytes, packed and unpacked, and no more values than are usual in that many bytes. One that is
  longer, or packed in another way than asked for, cannot be read.
- A try takes no longer than its timeout in all, however slowly the endpoint sends: the library alone limits the time for each
  piece.
- A redirect is followed within the origin that was named. Another origin is sent nothing: the texts of a request are users'.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import ssl
import weakref
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ragspan.addresses import shown_url
from ragspan.exceptions import ConfigurationError, JudgeError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

MAX_BODY = 4 * 1024 * 1024
"""Bytes of an answer that are read, unpacked; usual answers have some thousands."""
_MAX_VALUES = MAX_BODY // 64
"""Of an answer as JSON, each of which takes a hundred bytes and more once it is read."""
_GZIP = zlib.MAX_WBITS | 16
_REQUESTS_EACH = 8
"""Requests that one client has at a time, as long as there are fewer than `_MOST_CLIENTS`."""
_MOST_CLIENTS = 32
"""In one event loop; more requests share these."""


@dataclass(slots=True, eq=False)
class _Open:
    """A client that is open."""

    client: AsyncOpenAI
    lifetime: AsyncGenerator[AsyncOpenAI, None]
    loop: asyncio.AbstractEventLoop
    pid: int
    requests: int = 0


class ClientPool:
    """Clients with their open connections: one event loop and process each, and each for a few requests at a time.

    The pool of an HTTP client looks at all of its connections twice for each request, and asks the operating system about
    those that are idle. With 64 requests at a time this took a third of the processor time; with eight it takes almost none.

    A client is closed in its loop: when the pool is collected, or when the loop shuts down its asynchronous generators, as
    `asyncio.run` does at its end. It has no lock, which a fork could leave held: only a loop's own thread uses its clients.

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
    async with opening() as client:
        yield client


def _close_soon(opened: Iterable[_Open]) -> None:
    def start(one: _Open) -> None:
        closing = one.loop.create_task(_close(one))
        _closing.add(closing)
        closing.add_done_callback(_closing.discard)

    for one in opened:
        if one.pid == os.getpid():
            with contextlib.suppress(RuntimeError):  # the loop is closed
                one.loop.call_soon_threadsafe(start, one)


async def _close(one: _Open) -> None:
    """Close it. If the loop ends and cancels this before it starts, the loop closes it."""
    await one.lifetime.aclose()
    _alive.pop(one, None)


_closing: set[asyncio.Task[None]] = set()
_alive: dict[_Open, None] = {}
"""What is open. If one of these were collected, its loop would begin to close it: perhaps too late to finish before the loop
ends, and perhaps in a forked child, which must not."""


class GivenClient:
    """Lends a client that a user made with an HTTP client of its own, which works in one event loop only."""

    def __init__(self, client: AsyncOpenAI) -> None:
        self._client = client

    @asynccontextmanager
    async def borrowed(self) -> AsyncIterator[AsyncOpenAI]:
        """The client.

        Raises:
            JudgeError: it belongs to another event loop, or is closed.
        """
        try:
            yield self._client
        except RuntimeError as error:
            raise JudgeError(
                "ClientOfAnotherLoop",
                "client= has an http_client= whose connections belong to the event loop that used them first, or it is closed "
                f"({error}): make client and judge anew for each run, or give a client without http_client=",
            ) from None


def clients_for(client: AsyncOpenAI | None, options: dict[str, Any]) -> ClientPool | GivenClient:
    """Opens clients with these options, or with those of the given one, or lends that one.

    Raises:
        ConfigurationError: the environment names a proxy that it cannot use.
    """
    import openai

    if client is not None and type(getattr(client, "_client", None)).__name__ != "AsyncHttpxClientWrapper":
        return GivenClient(client)  # made with `http_client=`
    # Each client would read them again, while OpenSSL holds locks.
    certificates: ssl.SSLContext = _http_library().create_ssl_context()

    def opening() -> AsyncOpenAI:
        http_client = _http_client(certificates)
        return (
            client.copy(http_client=http_client) if client else openai.AsyncOpenAI(http_client=http_client, **options)
        )

    _ = opening().default_headers  # to name the system in them, Python starts a process
    return ClientPool(opening)


def _http_client(certificates: ssl.SSLContext) -> Any:
    headers, hooks = {"Accept-Encoding": "gzip"}, {"response": [_read_bounded]}
    names = {name for name in os.environ if name.lower() in {"http_proxy", "https_proxy", "all_proxy"}}
    proxies = ", ".join(sorted(names)) or "of the system"  # not their values, which may hold passwords
    try:
        return _timed_client()(verify=certificates, headers=headers, event_hooks=hooks)
    except ImportError:  # the library says so only if the proxy is a SOCKS proxy
        raise ConfigurationError(
            f"the environment names a SOCKS proxy ({proxies}), for which a package is missing: pip install socksio; "
            "or name the judge's host in NO_PROXY"
        ) from None
    except ValueError:
        raise ConfigurationError(
            f"a proxy in the environment ({proxies}) should be an address such as 'http://proxy:3128'"
        ) from None


@cache
def _http_library() -> Any:
    """`httpx`, or `httpx2` with later releases of `openai`."""
    import openai

    return importlib.import_module(openai.DefaultAsyncHttpxClient.__mro__[1].__module__)


@cache
def _timed_client() -> Any:
    import openai

    class TimedClient(openai.DefaultAsyncHttpxClient):
        """Limits the time of a request, its redirects and its whole answer."""

        async def send(self, request: Any, **named: Any) -> Any:
            seconds = request.extensions.get("timeout", {}).get("read")
            try:
                return await asyncio.wait_for(super().send(request, **named), seconds)
            except asyncio.TimeoutError:
                raise _http_library().ReadTimeout("the answer was not there in time", request=request) from None

    return TimedClient


async def _read_bounded(response: Any) -> None:
    """Read and unpack an answer up to the bound, before the client reads all of it; keep the client at this origin."""
    packing = response.headers.pop("Content-Encoding", "")
    unpacking = zlib.decompressobj(_GZIP) if "gzip" in packing else None
    body = bytearray()
    received = 0
    with contextlib.suppress(zlib.error):
        async for chunk in response.stream:
            received += len(chunk)
            body += chunk if unpacking is None else unpacking.decompress(chunk, MAX_BODY - len(body))
            if max(received, len(body)) >= MAX_BODY:
                break
    await response.stream.aclose()
    del body[MAX_BODY:]
    # What a bracket or a comma begins: values in texts count, too.
    content = bytes(body) if sum(map(body.count, (b"{", b"[", b","))) <= _MAX_VALUES else b""
    if response.has_redirect_location and (elsewhere := _other_origin(response)):
        del response.headers["Location"]
        response.headers["Content-Type"] = "application/json"
        message = f"it redirects to {elsewhere}, another origin, where nothing is sent"
        content = json.dumps({"error": {"message": message}}).encode()
    response.stream = type(response)(200, content=content).stream


def _other_origin(response: Any) -> str | None:
    """Where the answer redirects to, if that is not the origin of its request."""

    def origin(url: Any) -> tuple[str, str, int | None]:
        return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)

    here = response.request.url
    try:
        there = here.join(response.headers["Location"])
    except Exception:  # noqa: BLE001 - of the library, for what is not an address
        return "something that is not an address"
    return None if origin(there) == origin(here) else shown_url(str(there))
