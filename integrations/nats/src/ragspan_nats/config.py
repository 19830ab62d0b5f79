"""What this package reads from the environment besides the broker's credentials."""

from __future__ import annotations

from ragspan.config import variable
from ragspan.exceptions import ConfigurationError


def broker_address(given: str | None) -> str:
    """The broker's address: the given one, else that of `RAGSPAN_SINK`.

    Raises:
        ConfigurationError: there is none.
    """
    address = given or variable("RAGSPAN_SINK")
    if address is None:
        raise ConfigurationError("no broker is named: give --broker nats://host:4222, or set RAGSPAN_SINK to it")
    return address


def stream_name(given: str | None = None) -> str:
    """The name of the stream: the given one, else that of `RAGSPAN_NATS_STREAM`, else `ragspan`."""
    return given or variable("RAGSPAN_NATS_STREAM") or "ragspan"
