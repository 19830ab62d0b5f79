"""Requests to an MLflow server: its REST API, spoken directly.

MLflow's own client is not used. Its time limits, and its up to seven tries of 120 seconds each, can be set for the whole
process only; it reports its use to MLflow's makers unless the application forbids that; and importing it takes seconds
and well over a hundred megabytes. The four calls that are needed here are part of the documented API.

Guarantees:
- A connection may be used by several threads at the same time.
- Nothing here waits for longer than the server's time limit for a sign of life, and nothing is tried twice.
- What it raises names neither addresses nor credentials.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase, HTTPBasicAuth

from ragspan.delivery import Unavailable
from ragspan.delivery.retry_after import retry_after
from ragspan_mlflow.server import TrackingServer

if TYPE_CHECKING:
    from requests import PreparedRequest

_NOT_NOW = frozenset({401, 407, 429, 502, 503, 504})
"""The server is busy, or away behind its proxy, or it wants other credentials, which may come by rotation."""
_DOES_NOT_EXIST = "RESOURCE_DOES_NOT_EXIST"


class TimedOut(Exception):  # noqa: N818 - it tells of a state, not of a mistake
    """The server gave no sign of life within its time limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What the server answered."""

    status: int
    body: Mapping[str, Any]
    """Empty where the answer was no JSON object."""

    @property
    def is_ok(self) -> bool:
        return self.status == requests.codes.ok

    @property
    def names_nothing(self) -> bool:
        """Whether the trace, assessment or experiment that was asked for does not exist."""
        return self.status == requests.codes.not_found and self.body.get("error_code") == _DOES_NOT_EXIST


class Connection:
    """A connection to one server.

    Args:
        server: where it is.
        size: how many requests may be under way at once before connections are thrown away.
    """

    def __init__(self, server: TrackingServer, *, size: int = 1) -> None:
        self._server = server
        self._session = session_for(server, size=size)

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, query: Mapping[str, str] | None = None
    ) -> Reply:
        """Make a request; whatever the server answers to it is a reply, if it comes from MLflow.

        Raises:
            TimedOut: no answer came in time.
            Unavailable: the server cannot be reached, takes no requests at the moment, or does not know us.
        """
        try:
            response = self._session.request(
                method,
                self._server.url + path,
                params=query,
                json=body,
                timeout=self._server.timeout,
                allow_redirects=False,  # to a login page: a POST would become a GET there, and its answer a success
            )
        except requests.Timeout:
            raise TimedOut from None
        except requests.RequestException as error:
            raise Unavailable(type(error).__name__) from None
        return _reply(response)

    def close(self) -> None:
        self._session.close()


def session_for(server: TrackingServer, *, size: int = 1) -> requests.Session:
    """A session that shows who we are."""
    session = _Session((server.certificates or True) if server.checks_certificate else False)
    session.mount(server.url, HTTPAdapter(pool_connections=1, pool_maxsize=size))
    session.cert = server.client_certificate
    if server.token is not None:
        session.auth = _Bearer(server.token)
    elif server.username is not None:
        session.auth = HTTPBasicAuth(server.username.encode(), (server.password or "").encode())
    if server.workspace is not None:
        session.headers["X-MLFLOW-WORKSPACE"] = server.workspace
    return session


class _Session(requests.Session):
    """Checks the server's certificate as it was told, whatever other programs are told by `REQUESTS_CA_BUNDLE`."""

    def __init__(self, verify: bool | str) -> None:  # noqa: FBT001 - as Requests names it
        super().__init__()
        self._verify = verify

    def merge_environment_settings(self, *arguments: Any, **named: Any) -> Any:
        settings = super().merge_environment_settings(*arguments, **named)
        return settings if self._verify is True else {**settings, "verify": self._verify}


class _Bearer(AuthBase):
    """A header that is set as authentication is not replaced by what a .netrc file says."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def _reply(response: requests.Response) -> Reply:
    status = response.status_code
    if status in _NOT_NOW or response.is_redirect:
        raise Unavailable(f"http_{status}", retry_after=retry_after(response.headers.get("Retry-After")))
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        if response.ok:  # a proxy's page, a captive portal, another server
            raise Unavailable("no_json")
        body = {}
    return Reply(status=status, body=body)
