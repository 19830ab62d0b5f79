"""The HTTP client of backends, and what their replies mean.

The backends' own clients are not used. They bring packages, threads and time limits of their own for what is one request here;
and HTTPX, which some speak through, logs every request at level INFO, where Requests is silent.

Guarantees:
- A client may be used by several threads at the same time.
- No request waits for longer than the time limit for a sign of life, and none is tried twice.
- What it raises names neither addresses nor credentials, and quotes nothing of a reply.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, TypeVar

import requests
from requests.adapters import HTTPAdapter

from ragspan.delivery.backend import BatchRejected, Endpoint, Unavailable

_CONNECT_TIMEOUT = 5.0  # seconds
_NOT_NOW = frozenset({401, 407, 408, 425, 429, 502, 503, 504})
"""The server is busy, or away behind its proxy, or it wants other credentials, which may come by rotation."""
_REJECTIONS = frozenset({400, 413, 422})
"""Statuses that are about what was sent; 413 is a batch that is too large."""
_BARE = frozenset({202, 204})
"""Successes that may come without a word: what was sent is accepted."""

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


class TimedOut(Exception):  # noqa: N818 - it is a state, not a mistake
    """The server gave no sign of life within its time limit."""


class ServerError(Exception):
    """The server failed at a batch; it may do better at a part of it."""


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
        """What a status that is no success says of the whole batch."""
        reason = f"http_{self.status}"
        if self.status in _REJECTIONS:
            return BatchRejected(reason)
        if self.status == HTTPStatus.INTERNAL_SERVER_ERROR:
            return ServerError(reason)
        return Unavailable(reason, retry_after=self.retry_after)


class HttpClient:
    """A connection to one server.

    Args:
        endpoint: where it is, and who we are there.
        size: how many requests may be under way at once before connections are thrown away.
    """

    def __init__(self, endpoint: Endpoint, *, size: int = 1) -> None:
        self._endpoint = endpoint
        self._session = session_for(endpoint, size=size)

    def call(
        self,
        method: str,
        path: str,
        *,
        json: Mapping[str, Any] | None = None,
        data: bytes | None = None,
        query: Mapping[str, str | Sequence[str]] | None = None,
    ) -> Reply:
        """Make a request; whatever the server answers to it is a reply, if it is JSON or no success.

        Raises:
            TimedOut: no answer came in time.
            Unavailable: the server cannot be reached, takes no requests at the moment, or does not know us.
        """
        timeout = self._endpoint.timeout
        try:
            response = self._session.request(
                method,
                self._endpoint.url + path,
                params=query,
                json=json,
                data=data,
                headers=None if data is None else {"Content-Type": "application/json"},
                timeout=(min(timeout, _CONNECT_TIMEOUT), timeout),
                allow_redirects=False,  # to a login page: a POST would become a GET there, and its answer a success
            )
        except requests.ReadTimeout:
            raise TimedOut from None
        except requests.RequestException as error:
            raise Unavailable(type(error).__name__) from None
        return _reply(response)

    def close(self) -> None:
        """Close the connection."""
        self._session.close()


def session_for(endpoint: Endpoint, *, size: int = 1) -> requests.Session:
    """A session that shows who we are."""
    session = _Session()
    session.mount(endpoint.url, HTTPAdapter(pool_connections=1, pool_maxsize=size))
    session.headers.update(endpoint.headers)
    session.auth = _as_it_is
    session.verify = (endpoint.certificates or True) if endpoint.checks_certificate else False
    session.cert = endpoint.client_certificate
    return session


class _Session(requests.Session):
    """Checks the server's certificate as it was told, whatever other programs are told by `REQUESTS_CA_BUNDLE`."""

    def merge_environment_settings(self, *arguments: Any, **named: Any) -> Any:
        settings = super().merge_environment_settings(*arguments, **named)
        return settings if self.verify is True else {**settings, "verify": self.verify}


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """An authentication that changes nothing: without one, Requests looks for another in a .netrc file."""
    return request


def _reply(response: requests.Response) -> Reply:
    status, pause = response.status_code, retry_after(response.headers.get("Retry-After"))
    if status in _NOT_NOW or HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        raise Unavailable(f"http_{status}", retry_after=pause)
    try:
        body = response.json()
    except ValueError:
        body = None
    if isinstance(body, list):
        body = {"items": body}
    says_nothing = status in _BARE and not response.content
    if (
        response.ok and not isinstance(body, dict) and not says_nothing
    ):  # a proxy's page, a captive portal, another server
        raise Unavailable("no_json")
    return Reply(status=status, body=body if isinstance(body, dict) else {}, text=response.text, retry_after=pause)


def retry_after(header: str | None, *, clock: Callable[[], float] = time.time) -> float | None:
    """Seconds, 0 or more, of a `Retry-After` header: a number or a date; None if it says nothing that can be read."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - clock()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def in_parallel(work: Callable[[_Job], _Result], jobs: Sequence[_Job], size: int) -> list[_Result]:
    """Do all jobs, so many at a time; their results, in order.

    No thread outlives the call; where none can be started, the caller's does all the work. The threads see the caller's context
    variables, so instrumentation that is suppressed there is suppressed in them.

    Raises:
        Exception: what a job raised, one of them if several did; no job is begun after it, those under way are waited for.
    """
    left = deque(range(len(jobs)))
    results: dict[int, _Result] = {}
    errors: list[Exception] = []

    def drive() -> None:
        with contextlib.suppress(IndexError):
            while not errors:
                place = left.popleft()
                try:
                    results[place] = work(jobs[place])
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
