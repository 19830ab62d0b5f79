"""The HTTP client of all tools, and what their replies mean.

No redirect is followed, and no request is tried twice. What the client raises names neither addresses nor credentials, and quotes
nothing of a reply.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from json import loads
from typing import TYPE_CHECKING, Any

from ragspan.addresses import cause_of, without_credentials
from ragspan.arguments import SOME_SECONDS
from ragspan.exceptions import ConfigurationError
from ragspan.process import keep_inherited, watch_forks
from ragspan.tools.delivery import BatchRejected, ExportError, Unavailable

if TYPE_CHECKING:
    import requests

MAX_REPLY = 16 * 1024 * 1024
"""Bytes of a reply that are read, unpacked; of a page of stored traces, most others have some hundreds."""
TOO_LARGE = "reply_too_large"
"""Why a reply could not be read that has more bytes than its bound."""
_PIECE = 16 * 1024
_CONNECT_TIMEOUT = 5.0  # seconds
_ACCEPTED, _REDIRECTS, _BAD = 202, 300, 400
_NOT_NOW = frozenset({*range(_REDIRECTS, _BAD), 401, 407, 408, 425, 429, 502, 503, 504})
"""The server is busy, or away behind its proxy, or it wants other credentials, which may come by rotation."""
_ABOUT_BATCH: Mapping[int, type[Exception]] = {**dict.fromkeys((_BAD, 413, 422), BatchRejected), 500: ExportError}
"""Statuses that are about what was sent, or perhaps are; 413 is a batch that is too large."""


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A server that is reached by HTTP, and our credentials there."""

    url: str
    """Without a slash at its end, and without credentials."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """For each request, by lower-case name; the authorization is one of them."""
    timeout: float = 30.0
    """Seconds that it may take to answer."""

    @classmethod
    def at(cls, name: str, url: str, *, headers: Mapping[str, str | None], timeout: float) -> Endpoint:
        """The server at this address, which `name` has; credentials in it become an authorization, unless the headers have one.

        Raises:
            ConfigurationError: it is not an address, or no time limit. The address is not shown: it may hold a password.
        """
        SOME_SECONDS.check("timeout", timeout)
        try:
            parts, authorization = without_credentials(url)
        except (ValueError, AttributeError):
            raise ConfigurationError(f"{name} should be an address such as http://host:port") from None
        chosen = {} if authorization is None else {"authorization": authorization}
        chosen |= {key: value for key, value in headers.items() if value is not None}
        return cls(url=parts._replace(query="").geturl().rstrip("/"), headers=chosen, timeout=timeout)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the server answered."""

    status: int
    body: Mapping[str, Any]
    """The JSON object that it answered; a list is its entry `items`. Empty where the answer was none."""
    text: str = field(repr=False)

    @property
    def is_ok(self) -> bool:
        return self.status < _REDIRECTS

    def expect(self, entry: str, tool: str) -> Reply:
        """This reply, if it is a success of this tool, which always has this entry.

        Raises:
            Exception: the status says why, as `ScoreWriter.write` raises it; or it is the greeting of another server.
        """
        if not self.is_ok:
            raise _ABOUT_BATCH.get(self.status, Unavailable)(f"http_{self.status}")
        if self.status != _ACCEPTED and entry not in self.body:
            raise Unavailable(f"not_{tool}")
        return self


class HttpClient:
    """Makes requests to one server, from any thread. The child of a fork has connections of its own."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._session: requests.Session | None = None
        watch_forks(self, HttpClient._leave_to_parent)

    def call(
        self, method: str, path: str, *, query: Mapping[str, str | Sequence[str]] | None = None, json: Any = None
    ) -> Reply:
        """Make a request; whatever the server answers to it is a reply, if it is JSON or no success.

        Raises:
            TimeoutError: no answer came in time.
            Unavailable: the server cannot be reached, takes no requests at the moment, or refuses our credentials.
            BatchRejected: what is to be sent cannot be JSON.
        """
        import requests

        self._session = self._session or session_for(self.endpoint)  # two threads may both make one: the later is kept
        url, timeout, content = self.endpoint.url + path, self.endpoint.timeout, bytearray()
        about: dict[str, Any] = {"params": query, "json": json, "timeout": (min(timeout, _CONNECT_TIMEOUT), timeout)}
        try:
            with self._session.request(method, url, stream=True, **about) as response:
                for piece in response.iter_content(_PIECE):
                    content += piece
                    if len(content) >= MAX_REPLY:
                        raise Unavailable(TOO_LARGE)
        except requests.ReadTimeout:
            raise TimeoutError from None
        except requests.exceptions.InvalidJSONError:
            raise BatchRejected("no_json") from None
        except requests.RequestException as error:
            raise Unavailable(cause_of(error) or type(error).__name__) from None
        status, body = response.status_code, None
        if status in _NOT_NOW:
            pause = response.headers.get("Retry-After", "")  # or a date, which servers of scores do not send
            raise Unavailable(f"http_{status}", retry_after=float(pause) if pause.isdecimal() else None)
        with contextlib.suppress(ValueError, RecursionError):
            body = loads(content or b"{}")
        body = {"items": body} if isinstance(body, list) else body if isinstance(body, dict) else None
        if body is None and status < _BAD:
            raise Unavailable("no_json")  # a proxy's page, another server
        return Reply(status=status, body=body or {}, text=content.decode("utf-8", "replace"))

    def close(self) -> None:
        if self._session is not None:
            self._session.close()

    def _leave_to_parent(self) -> None:
        """The child of a fork must not use or close the parent's connections."""
        keep_inherited(self._session)
        self._session = None


def session_for(endpoint: Endpoint) -> requests.Session:
    """A session with our credentials that reaches the server that was named, and no other."""
    import requests

    session = requests.Session()
    # To a login page a POST would become a GET, whose answer is a success; elsewhere it would carry texts away.
    session.get_redirect_target = lambda _: None  # type: ignore[method-assign, assignment]
    session.headers.update(endpoint.headers)
    session.auth = lambda request: request  # without an authentication, Requests looks for one in a .netrc file
    return session
