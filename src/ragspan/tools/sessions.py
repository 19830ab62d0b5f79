"""The session of Requests for one server: its credentials, its certificates, and no redirect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import requests
from requests.adapters import HTTPAdapter


class ToolSession(requests.Session):
    """A session that reaches the server that was named, and no other.

    Args:
        headers: for each request.
        verify: whether to check certificates, or the authorities to trust in place of the usual ones.
        certificate: our own.
        size: how many connections stay open.
    """

    def __init__(
        self,
        headers: Mapping[str, str],
        *,
        verify: bool | str = True,
        certificate: str | None = None,
        size: int = 1,
    ) -> None:
        super().__init__()
        for scheme in ("http://", "https://"):
            self.mount(scheme, HTTPAdapter(pool_connections=1, pool_maxsize=size))
        self.headers.update(headers)
        self.auth = lambda request: request  # without an authentication, Requests looks for one in a .netrc file
        self.verify = verify
        self.cert = certificate

    def merge_environment_settings(self, *arguments: Any, **named: Any) -> Any:
        """The settings of a request; what the endpoint says of certificates goes before the environment's word."""
        settings = super().merge_environment_settings(*arguments, **named)
        return settings if self.verify is True else {**settings, "verify": self.verify}

    def get_redirect_target(self, resp: requests.Response) -> str | None:  # noqa: ARG002 - the base class's signature
        """None: to a login page a POST would become a GET, whose answer is a success; elsewhere it would carry texts away."""
        return None
