"""Sessions of Requests whose replies have bounds, for whatever server is asked by HTTP.

Guarantees:
- A reply is read up to a number of bytes, unpacked, and for no longer than the time limit, which is looked at between pieces.
- No redirect is followed, so what is sent reaches the server that was named, and no other.
"""

from __future__ import annotations

import time
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import DecodeError, HTTPError, ReadTimeoutError

_PIECE = 16 * 1024


class BoundedSession(requests.Session):
    """A session as the module describes it; it checks certificates as `verify` says, whatever the environment says.

    Args:
        most: bytes of a reply that are read, unpacked.
        size: how many connections stay open.
    """

    def __init__(self, *, most: int, size: int = 1) -> None:
        super().__init__()
        for scheme in ("http://", "https://"):
            self.mount(scheme, _Adapter(size=size, most=most))

    def merge_environment_settings(self, *arguments: Any, **named: Any) -> Any:
        settings = super().merge_environment_settings(*arguments, **named)
        return settings if self.verify is True else {**settings, "verify": self.verify}

    def get_redirect_target(self, resp: requests.Response) -> str | None:  # noqa: ARG002 - the base class's signature
        """None: to a login page a POST would become a GET, whose answer is a success; elsewhere it would carry texts away."""
        return None


class _Adapter(HTTPAdapter):
    """Hands out replies that have been read, within the bounds."""

    def __init__(self, *, size: int, most: int) -> None:
        self._most = most
        super().__init__(pool_connections=1, pool_maxsize=size)

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: FBT001, FBT002, ARG002 - the base class's signature
        timeout: Any = None,
        *arguments: Any,
        **named: Any,
    ) -> requests.Response:
        seconds = timeout[1] if isinstance(timeout, tuple) else timeout
        ends_at = None if seconds is None else time.monotonic() + seconds
        response = super().send(request, True, timeout, *arguments, **named)  # noqa: FBT003 - the connection is ours
        body = bytearray()
        try:
            while len(body) < self._most and (piece := response.raw.read(_PIECE, decode_content=True)):
                body += piece
                if ends_at is not None and time.monotonic() > ends_at:
                    raise requests.ReadTimeout(request=request)
            if len(body) < self._most:
                response.raw.release_conn()
        except ReadTimeoutError as error:
            raise requests.ReadTimeout(request=request) from error
        except DecodeError:
            body.clear()
        except HTTPError as error:
            raise requests.ConnectionError(request=request) from error
        finally:
            response.raw.close()  # which leaves a connection alone that was released
        response._content, response._content_consumed = bytes(body[: self._most]), True  # noqa: SLF001
        return response
