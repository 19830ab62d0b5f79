"""Where an MLflow server is, and who we are to it: as MLflow's own client reads it from the environment."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from ragspan.config import variable
from ragspan.exceptions import ConfigurationError

_HTTP = ("http", "https")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackingServer:
    """An MLflow tracking server that is reached by HTTP.

    Raises:
        ConfigurationError: the URL or the time limit is not allowed.
    """

    url: str
    """Without a slash at its end, and without credentials."""
    token: str | None = field(default=None, repr=False)
    """A bearer token; it goes before name and password."""
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    workspace: str | None = None
    """For servers that have several."""
    certificates: str | None = None
    """A file or folder of certificate authorities to trust in place of the usual ones."""
    client_certificate: str | None = None
    """A file with our own certificate and its key."""
    checks_certificate: bool = True
    timeout: float = 10.0
    """Seconds, more than 0, that the server may let us wait for a connection, and for each sign of life afterwards."""

    def __post_init__(self) -> None:
        parts = _split(self.url)
        if not (math.isfinite(self.timeout) and self.timeout > 0):
            raise ConfigurationError(f"timeout is {self.timeout!r}, but should be a number of seconds, more than 0")
        if parts.username is not None:
            object.__setattr__(self, "username", unquote(parts.username))
            object.__setattr__(self, "password", unquote(parts.password or ""))
        bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")
        object.__setattr__(self, "url", urlunsplit(bare).rstrip("/"))

    @classmethod
    def from_environment(
        cls, tracking_uri: str | None = None, *, token: str | None = None, timeout: float = 10.0
    ) -> TrackingServer:
        """The server of this URI, or else of `MLFLOW_TRACKING_URI`, with the credentials of the environment.

        Raises:
            ConfigurationError: no server is named, or it is none that is reached by HTTP.
        """
        uri = tracking_uri or variable("MLFLOW_TRACKING_URI")
        if uri is None:
            raise ConfigurationError(
                "no MLflow server is named: give tracking_uri, such as http://localhost:5000, or set MLFLOW_TRACKING_URI"
            )
        return cls(
            url=uri,
            token=token or variable("MLFLOW_TRACKING_TOKEN"),
            username=variable("MLFLOW_TRACKING_USERNAME"),
            password=variable("MLFLOW_TRACKING_PASSWORD"),
            workspace=variable("MLFLOW_WORKSPACE"),
            certificates=variable("MLFLOW_TRACKING_SERVER_CERT_PATH"),
            client_certificate=variable("MLFLOW_TRACKING_CLIENT_CERT_PATH"),
            checks_certificate=(variable("MLFLOW_TRACKING_INSECURE_TLS") or "").lower() not in {"true", "1"},
            timeout=timeout,
        )


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ConfigurationError("the tracking URI is no URL; write http://host:port") from None
    if parts.scheme not in _HTTP or not has_host:
        raise ConfigurationError(
            f"the tracking URI begins with {parts.scheme or 'no scheme'!r}, but scores go to an MLflow server by HTTP: "
            "start `mlflow server` and write http://host:port. Files, databases and Databricks profiles do not work"
        )
    return parts
