"""Sessions of Requests whose replies have bounds, for whatever server is asked by HTTP.

Guarantees:
- A reply takes no more than the session's bound in bytes, packed and unpacked. What is beyond is not read: the reply is cut there.
- A request and its whole reply take no longer than the time limit, however slowly the server sends: Requests alone limits the
  time for each piece. Connecting, and sending the request, take at most as long as Requests has for connecting.
- No redirect is followed, so what is sent reaches the server that was named, and no other.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import socket
import time
import zlib
from contextvars import ContextVar
from typing import Any, cast

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, ReadTimeoutError
from urllib3.response import BaseHTTPResponse

_PIECE = 64 * 1024
_GZIP = zlib.MAX_WBITS | 16
_ends_at: ContextVar[float | None] = ContextVar("ragspan_reply_ends_at", default=None)
"""When the reply to the request that is being made has to be there, by the monotonic clock."""


class BoundedSession(requests.Session):
    """A session as the module describes it; it checks certificates as `verify` says, whatever the environment says.

    Args:
        most: bytes of a reply that are read, unpacked.
        size: how many connections stay open.
    """

    def __init__(self, *, most: int, size: int = 1) -> None:
        super().__init__()
        self.headers["Accept-Encoding"] = "gzip"
        for scheme in ("http://", "https://"):
            self.mount(scheme, BoundedAdapter(size=size, most=most))

    def merge_environment_settings(self, *arguments: Any, **named: Any) -> Any:
        settings = super().merge_environment_settings(*arguments, **named)
        return settings if self.verify is True else {**settings, "verify": self.verify}

    def get_redirect_target(self, resp: requests.Response) -> str | None:  # noqa: ARG002 - the base class's signature
        """None: to a login page a POST would become a GET, whose answer is a success; elsewhere it would carry texts away."""
        return None


class BoundedAdapter(HTTPAdapter):
    """Hands out replies that have been read, within the bounds."""

    def __init__(self, *, size: int, most: int) -> None:
        self._most = most
        super().__init__(pool_connections=1, pool_maxsize=size)

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        super().init_poolmanager(*arguments, **named)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **named: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **named)
        manager.pool_classes_by_scheme = _POOLS
        return manager

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: FBT001, FBT002 - the base class's signature
        timeout: float | tuple[float | None, float | None] | None = None,
        *arguments: Any,
        **named: Any,
    ) -> requests.Response:
        """The reply, read. Raises `requests.ReadTimeout` where it is not there in time."""
        seconds = timeout[1] if isinstance(timeout, tuple) else timeout
        token = _ends_at.set(None if seconds is None else time.monotonic() + seconds)
        try:
            response = super().send(request, True, timeout, *arguments, **named)  # noqa: FBT003 - likewise
            packing = response.headers.pop("Content-Encoding", "")
            body = _read(response.raw, self._most, unpack="gzip" in packing)
        except ReadTimeoutError as error:
            raise requests.ReadTimeout(request=request) from error
        except HTTPError as error:
            raise requests.ConnectionError(request=request) from error
        finally:
            _ends_at.reset(token)
        response.raw = urllib3.HTTPResponse(io.BytesIO(body), preload_content=False)
        if not stream:
            _ = response.content
        return response


def _read(raw: BaseHTTPResponse, most: int, *, unpack: bool) -> bytes:
    """The body up to the bound; up to what cannot be unpacked."""
    unpacking = zlib.decompressobj(_GZIP) if unpack else None
    body = bytearray()
    received = 0
    with contextlib.suppress(zlib.error):
        while max(received, len(body)) < most:
            piece = raw.read(min(_PIECE, most - received), decode_content=False)
            if not piece:
                raw.release_conn()
                break
            received += len(piece)
            body += piece if unpacking is None else unpacking.decompress(piece, most - len(body))
    raw.close()  # which leaves a connection alone that was released
    return bytes(body)


class _InTime(io.RawIOBase):
    """Reads from a socket until the time is up."""

    def __init__(self, connection: socket.socket, ends_at: float) -> None:
        self._connection = connection
        self._ends_at = ends_at
        self._raw = cast("io.RawIOBase", connection.makefile("rb", buffering=0))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._connection.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Reply(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        ends_at = _ends_at.get()
        if ends_at is not None:
            self.fp.close()
            self.fp = io.BufferedReader(_InTime(sock, ends_at))


class _Connection(HTTPConnection):
    response_class = _Reply


class _TLSConnection(HTTPSConnection):
    response_class = _Reply


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TLSPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TLSConnection


_POOLS: dict[str, type] = {"http": _Pool, "https": _TLSPool}
