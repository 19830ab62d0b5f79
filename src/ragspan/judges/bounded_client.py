"""The HTTP client for requests to judges, which the `openai` client uses.

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
import zlib
from functools import cache
from typing import Any

from ragspan.addresses import shown_url
from ragspan.exceptions import ConfigurationError
from ragspan.json_values import count_values

MAX_BODY = 4 * 1024 * 1024
"""Bytes of an answer that are read, unpacked; usual answers have some thousands."""
_MAX_VALUES = MAX_BODY // 64
"""Of an answer as JSON, each of which takes a hundred bytes and more once it is read."""
_GZIP = zlib.MAX_WBITS | 16


def default_certificates() -> ssl.SSLContext:
    """The HTTP client's default certificates. Each client would read them again, while OpenSSL holds locks."""
    made: ssl.SSLContext = _http_library().create_ssl_context()
    return made


def open_http_client(certificates: ssl.SSLContext) -> Any:
    """A client for `openai.AsyncOpenAI(http_client=)`.

    Raises:
        ConfigurationError: the environment names a proxy that it cannot use.
    """
    headers, hooks = {"Accept-Encoding": "gzip"}, {"response": [_read_bounded]}
    try:
        return _timed_client()(verify=certificates, headers=headers, event_hooks=hooks)
    except ImportError:  # the library says so only if the proxy is a SOCKS proxy
        raise ConfigurationError(
            f"the environment names a SOCKS proxy ({_proxies()}), for which a package is missing: pip install socksio; "
            "or name the judge's host in NO_PROXY"
        ) from None
    except ValueError:
        raise ConfigurationError(
            f"a proxy in the environment ({_proxies()}) should be an address such as 'http://proxy:3128'"
        ) from None


def _proxies() -> str:
    """The names of the variables; their values may hold passwords."""
    names = [name for name in os.environ if name.lower() in {"http_proxy", "https_proxy", "all_proxy"}]
    return ", ".join(sorted(names)) or "of the system"


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
    content = bytes(body) if count_values(body, _MAX_VALUES) <= _MAX_VALUES else b""
    if response.has_redirect_location and (elsewhere := _other_origin(response)):
        del response.headers["Location"]
        response.headers["Content-Type"] = "application/json"
        message = f"it redirects to {elsewhere}, another origin, where nothing is sent"
        content = json.dumps({"error": {"message": message}}).encode()
    response.stream = type(response)(200, content=content).stream


def _other_origin(response: Any) -> str | None:
    """Where the answer redirects to, if that is not the origin of its request."""
    here = response.request.url
    try:
        there = here.join(response.headers["Location"])
    except Exception:  # noqa: BLE001 - of the library, for what is not an address
        return "something that is not an address"
    return None if _origin(there) == _origin(here) else shown_url(str(there))


def _origin(url: Any) -> tuple[str, str, int | None]:
    port = url.port or {"http": 80, "https": 443}.get(url.scheme)
    return url.scheme, url.host, port
