"""What ragspan's commands have in common: options, addresses to listen at, and signals."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Callable
from typing import Annotated, TypeAlias

import typer

from ragspan.exceptions import ConfigurationError

Metrics: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAMES", help="With commas between them; RAGSPAN_METRICS by default.")
]
Judge: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="JUDGE", help="overlap, or such as openai:gpt-4o-mini (ragspan judges); else RAGSPAN_JUDGE."),
]


def host_and_port(address: str) -> tuple[str, int]:
    """The parts of `host:port`, or of `[host]:port` with an IPv6 address; raises a `ConfigurationError` for anything else."""
    host, colon, port = address.rpartition(":")
    if not (colon and port.isdecimal() and int(port) < 2**16 and "/" not in host):
        raise ConfigurationError(f"the address {address!r} should have a host and a port, as in 127.0.0.1:PORT")
    return host.strip("[]"), int(port)


def listener_at(address: str) -> socket.socket:
    """A socket that listens at `host:port`; port 0 takes a free one. Raises a `ConfigurationError` if it is not available."""
    host, port = host_and_port(address)
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot listen at {address}: {error}") from None


def shown_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def call_at_signals(stop: Callable[[], None]) -> None:
    """Call this in the running event loop at SIGTERM and Ctrl-C."""
    import asyncio  # not for commands without a loop

    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows, where Ctrl-C raises KeyboardInterrupt
            asyncio.get_running_loop().add_signal_handler(number, stop)
