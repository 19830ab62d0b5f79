"""HTTP below the `openai` client: no answer takes more memory than a bound, and no log gets to see a secret of the address.

The HTTP client logs the address of each request, so it is told the host only. Path, query and credentials are put in below it,
the credentials as a header. An answer is read here up to the bound and handed up whole: what is longer ends as an answer that
cannot be read, and so does what is packed in another way than was asked for.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from ragspan.addresses import basic_credentials
from ragspan.exceptions import ConfigurationError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

PATH = "/chat/completions"
MAX_BODY = 4 * 1024 * 1024
"""Bytes of an answer that are read, unpacked; those of honest endpoints have some thousands."""
_GZIP = zlib.MAX_WBITS | 16
_ABOUT_THE_BODY = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})


@dataclass(frozen=True, slots=True)
class Address:
    """Where an endpoint is, split into what may be logged and what may not.

    Raises:
        ConfigurationError: it is no address.
    """

    origin: str
    target: str
    """Where requests go, without credentials."""
    authorization: str | None

    @classmethod
    def of(cls, base_url: str) -> Address:
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
            target=urlunsplit((parts.scheme, netloc, parts.path.rstrip("/") + PATH, parts.query, "")),
            authorization=f"Basic {basic}" if netloc != parts.netloc else None,
        )


def open_client(address: Address | None, **options: Any) -> AsyncOpenAI:
    """A client for the endpoint at this address; None is OpenAI's own."""
    import openai

    origin = None if address is None else address.origin
    return openai.AsyncOpenAI(base_url=origin, http_client=_http_client()(address), **options)


@cache
def _http_client() -> Any:
    """The class of the client's HTTP client, which may be httpx's or httpx2's, with a guard before its transports."""
    import openai

    base: Any = openai.DefaultAsyncHttpxClient

    class HttpClient(base):  # type: ignore[misc]
        def __init__(self, address: Address | None) -> None:
            super().__init__()
            self._address = address

        def _transport_for_url(
            self, url: Any
        ) -> Any:  # the one place that all transports come from, those of proxies too
            return _Guarded(super()._transport_for_url(url), self._address)

    return HttpClient


@dataclass(frozen=True, slots=True)
class _Guarded:
    """A transport that aims requests at the whole address, and bounds answers."""

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
        """The request at the whole address; one that a redirect has led elsewhere stays as it is."""
        if self.address is None or request.url != self.address.origin + PATH:
            return request
        headers = request.headers.copy()
        if self.address.authorization is not None:
            headers["Authorization"] = self.address.authorization
        url, extensions = self.address.target, request.extensions
        return type(request)(request.method, url, headers=headers, stream=request.stream, extensions=extensions)


async def _read(stream: AsyncIterable[bytes], encoding: str) -> bytes:
    """The body up to the bound; nothing of one in another encoding."""
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
