"""Tells from an error what is wrong with a connection, however many libraries have wrapped it, and what to do."""

from __future__ import annotations

import http.client
import socket
import ssl
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from ragspan.addresses import shown_url
from ragspan.config import variable

GRPC_PORT, HTTP_PORT = 4317, 4318
_DEFAULT_PORTS = {"http": 80, "https": 443}

Trouble: TypeAlias = Literal["certificate", "tls", "refused", "name", "timeout", "closed", "protocol", "unreachable"]

_MAX_CAUSES = 50
_KINDS: tuple[tuple[Trouble, tuple[type[BaseException], ...]], ...] = (
    ("certificate", (ssl.SSLCertVerificationError,)),
    ("tls", (ssl.SSLError,)),
    ("name", (socket.gaierror,)),
    ("refused", (ConnectionRefusedError,)),
    ("timeout", (TimeoutError, socket.timeout)),
    ("closed", (ConnectionError, EOFError)),
    ("protocol", (http.client.HTTPException,)),
    ("unreachable", (OSError,)),
)


def trouble_with(error: BaseException) -> Trouble | None:
    """What kept the connection from working, None if the error is about something else."""
    causes = list(_causes_of(error))
    # From the innermost out: libraries derive their own errors from OSError, too.
    return next((kind for kind, types in _KINDS for cause in reversed(causes) if isinstance(cause, types)), None)


def _causes_of(error: BaseException) -> Iterator[BaseException]:
    """The error and all that led to it, whether or not somebody wrote `from None`."""
    waiting: list[object] = [error]
    seen: set[int] = set()
    while waiting and len(seen) < _MAX_CAUSES:
        cause = waiting.pop(0)
        if not isinstance(cause, BaseException) or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        # Groups keep their errors, urllib3 keeps the cause of its last attempt, and requests wraps by argument.
        waiting += [cause.__cause__, cause.__context__, getattr(cause, "reason", None)]
        waiting += [*getattr(cause, "exceptions", ()), *cause.args]


EXPLANATIONS: dict[Trouble, str] = {
    "certificate": "its certificate is not trusted",
    "tls": "no TLS connection can be made",
    "refused": "nobody listens there (connection refused)",
    "name": "the host name cannot be resolved",
    "timeout": "it does not answer in time",
    "closed": "it closes the connection without an answer",
    "protocol": "what answers does not speak HTTP",
    "unreachable": "it cannot be reached",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where an exporter sends to."""

    url: str
    host: str
    port: int
    is_grpc: bool

    @property
    def shown(self) -> str:
        return shown_url(self.url)


def place_of(url: str, *, is_grpc: bool) -> Place | None:
    """The host and port of an endpoint; None if it is no URL that the exporter understands."""
    try:
        parts = urlsplit(url if "://" in url or not is_grpc else f"http://{url}")
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        return None
    default = GRPC_PORT if is_grpc else _DEFAULT_PORTS[parts.scheme]
    return Place(url=url, host=parts.hostname, port=port or default, is_grpc=is_grpc)


def proxy_for(place: Place) -> str | None:
    """The proxy that requests to the place go through, without its password."""
    if place.is_grpc or urllib.request.proxy_bypass(place.host):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(urlsplit(place.url).scheme) or proxies.get("all")
    return shown_url(proxy if "://" in proxy else f"http://{proxy}") if proxy else None


def advice_about(trouble: Trouble, place: Place) -> str:
    """What to do about a connection that cannot be made."""
    if trouble == "certificate":
        return _about_certificates(place)
    if trouble == "tls":
        return "is the address to begin with http:// in place of https://?"
    if trouble == "name":
        return "check the address; a name of a container network is known only inside of it"
    if trouble in {"closed", "protocol", "refused", "timeout"} and (mixed_up := mix_up(place)):
        return mixed_up
    if trouble == "protocol":
        return "is it a receiver for gRPC? Its port for HTTP is another one, mostly 4318"
    if trouble == "refused":
        return (
            f"start the receiver, or set the address where it listens; in a container, {place.host} is the container"
            if place.host in {"localhost", "127.0.0.1", "::1"}
            else "start the receiver, or set the address where it listens"
        )
    return "check the address, the receiver's log, and firewalls in between"


def _about_certificates(place: Place) -> str:
    """The exporter's HTTP client reads its own variables before those of OpenTelemetry."""
    overruling = None if place.is_grpc else next(filter(variable, ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")), None)
    if overruling:
        return f"add your certificate authority to the file that {overruling} names: it overrules OTEL_EXPORTER_OTLP_*"
    return "name the file of your certificate authority in OTEL_EXPORTER_OTLP_CERTIFICATE"


def mix_up(place: Place) -> str | None:
    """What to do where the port is the usual one of the other protocol."""
    if place.is_grpc and place.port == HTTP_PORT:
        return f"{HTTP_PORT} is the usual port of OTLP over HTTP: set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"
    if not place.is_grpc and place.port == GRPC_PORT:
        return (
            f"{GRPC_PORT} is the usual port of OTLP over gRPC: take port {HTTP_PORT}, or set "
            "OTEL_EXPORTER_OTLP_PROTOCOL=grpc and install opentelemetry-exporter-otlp-proto-grpc"
        )
    return None
