"""Where Phoenix is, and what it has to be shown: as Phoenix's own client finds it in the environment.

Of its variables only `.env.phoenix` files are not read: a library in production should not look for files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from ragspan import ConfigurationError
from ragspan.config import variable

_ENDPOINTS = ("PHOENIX_ENDPOINT", "PHOENIX_COLLECTOR_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT", "PHOENIX_BASE_URL")
"""In this order. That of the exporter of spans is a guess: Phoenix takes them where its API is."""
_TRACES_PATH = re.compile(r"/+v1/traces/?$")
_DEFAULT_PORT = "6006"
_GRPC_PORT = 4317


@dataclass(frozen=True, kw_only=True, slots=True)
class Location:
    """A Phoenix server, and who we are there."""

    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def locate(base_url: str | None, api_key: str | None, headers: Mapping[str, str] | None) -> Location:
    """The server that these arguments of `PhoenixAnnotations` name; what is None is looked up in the environment.

    Raises:
        ConfigurationError: there is no such address; the message names where it comes from.
    """
    if base_url is not None:
        return Location(base_url=_checked("base_url", base_url), headers=_headers(api_key, headers))
    for name in _ENDPOINTS:
        endpoint = variable(name)
        if endpoint is not None and not _is_for_grpc(name, endpoint):
            return Location(base_url=_checked(name, _TRACES_PATH.sub("", endpoint)), headers=_headers(api_key, headers))
    return Location(base_url=_from_host(), headers=_headers(api_key, headers))


def _from_host() -> str:
    """`PHOENIX_HOST` is what the server binds to, so it may be a bare name, or stand for all addresses."""
    host = variable("PHOENIX_HOST") or "127.0.0.1"
    port = variable("PHOENIX_PORT") or _DEFAULT_PORT
    if "://" in host:
        return _checked("PHOENIX_HOST", host)
    reachable = "127.0.0.1" if host in {"0.0.0.0", "::"} else host  # noqa: S104 - what the server binds to, not we
    name = f"[{reachable}]" if ":" in reachable else reachable
    return _checked("PHOENIX_HOST", f"http://{name}:{port}")


def _is_for_grpc(name: str, endpoint: str) -> bool:
    """Whether this is the collector's port for gRPC, on which there is no REST API."""
    try:
        return name == "OTEL_EXPORTER_OTLP_ENDPOINT" and urlsplit(endpoint).port == _GRPC_PORT
    except ValueError:
        return False


def _checked(name: str, address: str) -> str:
    try:
        parts = urlsplit(address)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except (ValueError, AttributeError):
        is_address = False
    if not is_address:  # the value is not shown: it may hold a password
        raise ConfigurationError(f"{name} should be an address such as 'http://127.0.0.1:6006'")
    return address.rstrip("/")


def _headers(api_key: str | None, headers: Mapping[str, str] | None) -> dict[str, str]:
    """The headers given, else those of `PHOENIX_CLIENT_HEADERS`; an API key goes before an authorization among them."""
    if headers is None and api_key is None:
        chosen = _headers_in(variable("PHOENIX_CLIENT_HEADERS") or "")
        api_key = None if "authorization" in chosen else variable("PHOENIX_API_KEY")
    else:
        chosen = {name.lower(): value for name, value in (headers or {}).items()}
    return chosen | ({"authorization": f"Bearer {api_key.strip()}"} if api_key else {})


def _headers_in(text: str) -> dict[str, str]:
    """Headers as the variables of OpenTelemetry have them: `name=value,name=value`, URL-encoded."""
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return {unquote(name).strip().lower(): unquote(value).strip() for name, _, value in pairs if name.strip()}
