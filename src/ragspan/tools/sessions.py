"""The session of Requests for one server: its credentials, its certificates, and no redirect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import HTTPAdapter

if TYPE_CHECKING:
    from ragspan.tools.http import Endpoint


class ToolSession(requests.Session):
    """A session that reaches the server that was named, and no other.

    Args:
        endpoint: the server.
        size: how many connections stay open.
    """

    def __init__(self, endpoint: Endpoint, *, size: int = 1) -> None:
        super().__init__()
        for scheme in ("http://", "https://"):
            self.mount(scheme, HTTPAdapter(pool_connections=1, pool_maxsize=size))
        self.headers.update(endpoint.headers)
        self.auth = lambda request: request  # without an authentication, Requests looks for one in a .netrc file
        self.verify = (endpoint.certificates or True) if endpoint.checks_certificate else False
        self.cert = endpoint.client_certificate

    def merge_environment_settings(self, *arguments: Any, **named: Any) -> Any:
        """The settings of a request; what the endpoint says of certificates goes before the environment's word."""
        settings = super().merge_environment_settings(*arguments, **named)
        return settings if self.verify is True else {**settings, "verify": self.verify}

    def get_redirect_target(self, resp: requests.Response) -> str | None:  # noqa: ARG002 - the base class's signature
        """None: to a login page a POST would become a GET, whose answer is a success; elsewhere it would carry texts away."""
        return None
