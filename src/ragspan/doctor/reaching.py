"""Whether anybody listens at an endpoint, before anything is sent to it."""

from __future__ import annotations

import socket
import urllib.request
from dataclasses import dataclass
from urllib.parse import urlsplit

from ragspan.addresses import shown_url
from ragspan.config import variable
from ragspan.doctor.causes import Trouble, trouble_with

GRPC_PORT, HTTP_PORT = 4317, 4318
_DEFAULT_PORTS = {"http": 80, "https": 443}


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


def reach(place: Place, *, seconds: float) -> Trouble | None:
    """Open a connection and close it again; what is wrong if that is impossible."""
    try:
        socket.create_connection((place.host, place.port), timeout=seconds).close()
    except (OSError, UnicodeError) as error:
        return trouble_with(error) or "name"
    return None


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
    """The HTTP client of the exporter heeds its own variables before those of OpenTelemetry."""
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
