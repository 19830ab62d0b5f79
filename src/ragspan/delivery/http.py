"""The HTTP client of backends, and what their replies mean.

The backends' own clients are not used. They bring packages, threads and time limits of their own for what is one request here;
and HTTPX, which some use, logs every request at level INFO, where Requests is silent.

Guarantees:
- A client may be used by several threads at the same time. The child of a fork has connections of its own.
- Requests is imported with the first request, in the thread that makes it.
- A reply has the bounds of `ragspan.delivery.sessions`: a number of bytes, the time limit in all, and no redirect. Its values are
  counted before it is read as JSON, so what a reply takes in memory stays within a small multiple of its bound.
- No request is tried twice.
- What the client raises names neither addresses nor credentials, and quotes nothing of a reply.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from json import loads
from typing import TYPE_CHECKING, Any, TypeVar

from ragspan.addresses import cause_of, without_credentials
from ragspan.arguments import SOME_SECONDS
from ragspan.delivery.write_results import BatchRejected, Unavailable
from ragspan.exceptions import ConfigurationError
from ragspan.forks import keep_inherited, watch_forks
from ragspan.json_values import count_values

if TYPE_CHECKING:
    import requests

    from ragspan.delivery.sessions import BoundedSession

MAX_REPLY = 1024 * 1024
"""Bytes of a reply to what was written that are read, unpacked; usual ones have some hundreds."""
MAX_PAGE = 16 * 1024 * 1024
"""The same of a reply that is read for its content, such as a page of stored traces."""
_CONNECT_TIMEOUT = 5.0  # seconds
_NOT_NOW = frozenset({401, 407, 408, 425, 429, 502, 503, 504})
"""The server is busy, or away behind its proxy, or it wants other credentials, which may come by rotation."""
_REJECTIONS = frozenset({400, 413, 422})
"""Statuses that are about what was sent; 413 is a batch that is too large."""
_BARE = frozenset({202, 204})
"""Successes that may come without a word: what was sent is accepted."""

TOO_LARGE = "reply_too_large"
"""Why a reply could not be read that has more bytes or values than its bound."""
_BYTES_A_VALUE = 32
"""A reply may have a value for each such part of its bound; usual ones have longer values."""

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


class ServerError(Exception):
    """The server failed at a batch; it may succeed with a part of it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """A server that is reached by HTTP, and our credentials there."""

    url: str
    """Without a slash at its end, and without credentials."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """For each request, by lower-case name; the authorization is one of them."""
    timeout: float = 10.0
    """Seconds that it may take to answer, to the last byte."""
    certificates: str | None = None
    """A file or folder of certificate authorities to trust in place of the usual ones."""
    client_certificate: str | None = None
    """A file with our own certificate and its key."""
    checks_certificate: bool = True

    @classmethod
    def at(
        cls, name: str, url: str, *, headers: Mapping[str, str] | None = None, timeout: float, **tls: Any
    ) -> Endpoint:
        """The server at this address; credentials in it become an authorization, unless the headers have one.

        Args:
            name: where the address comes from, for the message.
            url: the address.
            headers: for each request.
            timeout: seconds, more than 0.
            tls: the other fields.

        Raises:
            ConfigurationError: it is not an address, or no time limit. The address is not shown: it may hold a password.
        """
        SOME_SECONDS.check("timeout", timeout)
        try:
            parts, authorization = without_credentials(url)
        except (ValueError, AttributeError):
            raise ConfigurationError(f"{name} should be an address such as http://host:port") from None
        chosen = dict(headers or {})
        if authorization is not None:
            chosen.setdefault("authorization", authorization)
        return cls(url=parts._replace(query="").geturl().rstrip("/"), headers=chosen, timeout=timeout, **tls)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What the server answered."""

    status: int
    body: Mapping[str, Any]
    """The JSON object that it answered; a list is its entry `items`. Empty where the answer was none."""
    text: str = field(repr=False)
    retry_after: float | None = None

    @property
    def is_ok(self) -> bool:
        return self.status < HTTPStatus.MULTIPLE_CHOICES

    def failure(self) -> Exception:
        """What a status that is not a success says of the whole batch."""
        reason = f"http_{self.status}"
        if self.status in _REJECTIONS:
            return BatchRejected(reason)
        if self.status == HTTPStatus.INTERNAL_SERVER_ERROR:
            return ServerError(reason)
        return Unavailable(reason, retry_after=self.retry_after)


class HttpClient:
    """Makes requests to one server.

    Args:
        endpoint: the server.
        size: how many connections stay open.
        most: bytes of a reply that are read, unpacked.
    """

    def __init__(self, endpoint: Endpoint, *, size: int = 1, most: int = MAX_REPLY) -> None:
        self.endpoint = endpoint
        self._size = size
        self._most = most
        self._session: BoundedSession | None = None
        watch_forks(self, HttpClient._leave_to_parent)

    def call(
        self, method: str, path: str, *, json: Any = None, query: Mapping[str, str | Sequence[str]] | None = None
    ) -> Reply:
        """Make a request; whatever the server answers to it is a reply, if it is JSON or no success.

        Raises:
            TimeoutError: no answer came in time.
            Unavailable: the server cannot be reached, takes no requests at the moment, or refuses our credentials.
            BatchRejected: what is to be sent cannot be JSON.
        """
        import requests

        if self._session is None:  # two threads may both make one: the later one is kept
            self._session = session_for(self.endpoint, size=self._size, most=self._most)
        timeout = self.endpoint.timeout
        try:
            response = self._session.request(
                method,
                self.endpoint.url + path,
                params=query,
                json=json,
                timeout=(min(timeout, _CONNECT_TIMEOUT), timeout),
            )
        except requests.ReadTimeout:
            raise TimeoutError from None
        except requests.exceptions.InvalidJSONError:
            raise BatchRejected("no_json") from None
        except requests.RequestException as error:
            raise Unavailable(cause_of(error) or type(error).__name__) from None
        return _reply(response, self._most)

    def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            self._session.close()

    def _leave_to_parent(self) -> None:
        """The child of a fork must not use or close the parent's connections."""
        keep_inherited(self._session)
        self._session = None


def session_for(endpoint: Endpoint, *, size: int = 1, most: int = MAX_REPLY) -> BoundedSession:
    """A session with our credentials for this server."""
    from ragspan.delivery.sessions import BoundedSession

    session = BoundedSession(size=size, most=most)
    session.headers.update(endpoint.headers)
    session.auth = lambda request: request  # without an authentication, Requests looks for one in a .netrc file
    session.verify = (endpoint.certificates or True) if endpoint.checks_certificate else False
    session.cert = endpoint.client_certificate
    return session


def _reply(response: requests.Response, most: int) -> Reply:
    status, pause = response.status_code, _seconds(response.headers.get("Retry-After"))
    if status in _NOT_NOW or HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        raise Unavailable(f"http_{status}", retry_after=pause)
    content, values = response.content, most // _BYTES_A_VALUE
    is_too_large = len(content) >= most or count_values(content, values) > values
    if response.ok and is_too_large:
        raise Unavailable(TOO_LARGE)
    try:
        body = None if is_too_large else loads(content)
    except (ValueError, RecursionError):
        body = None
    if isinstance(body, list):
        body = {"items": body}
    is_bare = status in _BARE and not content
    if response.ok and not isinstance(body, dict) and not is_bare:  # a proxy's page, a captive portal, another server
        raise Unavailable("no_json")
    text = content.decode("utf-8", "replace")
    return Reply(status=status, body=body if isinstance(body, dict) else {}, text=text, retry_after=pause)


def _seconds(header: str | None) -> float | None:
    """What a `Retry-After` header asks for; None for a date, which servers of scores do not send."""
    with contextlib.suppress(ValueError):
        return max(0.0, float(header or ""))
    return None


def in_parallel(work: Callable[[_Job], _Result], jobs: Sequence[_Job], size: int) -> list[_Result]:
    """Do all jobs, `size` at a time; their results, in order. No thread outlives the call.

    The threads see the caller's context variables: instrumentation that is suppressed there is suppressed in them. An executor
    of the standard library does nothing at the end of the interpreter, and delays it; here the caller then does all the work.

    Raises:
        Exception: what a job raised, one of them if several did. No job is begun after it; those under way are waited for.
    """
    left = deque(enumerate(jobs))
    results: dict[int, _Result] = {}
    errors: list[Exception] = []

    def drive() -> None:
        with contextlib.suppress(IndexError):
            while not errors:
                place, job = left.popleft()
                try:
                    results[place] = work(job)
                except Exception as error:  # noqa: BLE001 - it is raised in the caller's thread
                    errors.append(error)

    started = []
    for _ in range(min(size, len(jobs)) - 1):
        run = contextvars.copy_context().run
        thread = threading.Thread(target=run, args=(drive,), name="ragspan-parallel", daemon=True)
        with contextlib.suppress(RuntimeError):  # the interpreter is at its end, or the system has no more
            thread.start()
            started.append(thread)
    drive()
    for thread in started:
        thread.join()
    if errors:
        raise errors[0]
    return [results[place] for place in range(len(jobs))]
