"""Where the scores go: never to the receiver itself, which would score them in turn."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

from ragspan.addresses import shown_url
from ragspan.exceptions import ConfigurationError
from ragspan.telemetry.environment import endpoint, exporter_names, exporter_of

_DEFAULTS = {"otlp_proto_grpc": "http://localhost:4317"}
_HTTP_DEFAULT = "http://localhost:4318"
_LAST_PORT = 65_535
_PORTS = {"http": 80, "https": 443}


def listening(address: str) -> socket.socket:
    """A socket that listens at `host:port`; port 0 takes a free one.

    Raises:
        ConfigurationError: the address is none, or cannot be had.
    """
    host, port = parts_of(address)
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"OTLP cannot be received at {address}: {error}") from None


def parts_of(address: str) -> tuple[str, int]:
    """Host and port of `host:port`.

    Raises:
        ConfigurationError: the address is none.
    """
    host, colon, port = address.rpartition(":")
    if not (colon and port.isdecimal() and int(port) <= _LAST_PORT):
        raise ConfigurationError(f"the address {address!r} should be like 127.0.0.1:4318")
    return host.strip("[]"), int(port)


def check_destination(host: str, port: int) -> None:
    """See to it that spans are not exported to a receiver that listens there.

    Raises:
        ConfigurationError: they are.
    """
    for name in exporter_names("traces"):
        if "otlp" not in name:
            continue
        target = endpoint("traces") or _DEFAULTS.get(exporter_of("traces", name).name, _HTTP_DEFAULT)
        if _is_at(target, host, port):
            raise ConfigurationError(
                f"scores would be sent to {shown_url(target)}, which is this receiver: set OTEL_EXPORTER_OTLP_ENDPOINT to the "
                "backend that shows them, or have the receiver listen elsewhere"
            )


def _is_at(url: str, host: str, port: int) -> bool:
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if (parts.port or _PORTS.get(parts.scheme)) != port:
            return False
        here = list(_addresses(host))
        is_everywhere = any(ip_address(one).is_unspecified for one in here)
        return any(one in here or (is_everywhere and _is_local(one)) for one in _addresses(parts.hostname))
    except (OSError, ValueError):  # the exporter will say what is wrong with it
        return False


def _addresses(host: str | None) -> Iterator[str]:
    for *_, address in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
        yield str(address[0]).partition("%")[0]  # without an interface


def _is_local(address: str) -> bool:
    """Whether it is an address of this machine: others cannot be bound."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
        return True
