"""What this package reads from the environment besides the broker's credentials."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ragspan.config import variable
from ragspan.exceptions import ConfigurationError
from ragspan_nats.streams import StreamLimits

_LIMITS = {
    "RAGSPAN_NATS_MAX_RECORDS": "max_records",
    "RAGSPAN_NATS_MAX_BYTES": "max_bytes",
    "RAGSPAN_NATS_REPLICAS": "replicas",
}


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


def stream_limits() -> StreamLimits:
    """The limits of streams that are missing, with those of `RAGSPAN_NATS_MAX_RECORDS`, `_MAX_BYTES` and `_REPLICAS`.

    Raises:
        ConfigurationError: one of these is no whole number, or out of its range.
    """
    given = {name: value for name in _LIMITS if (value := variable(name)) is not None}
    limits = StreamLimits()
    for name, value in given.items():
        changed: dict[str, Any] = {_LIMITS[name]: int(value) if value.isdecimal() else value}
        try:
            limits = replace(limits, **changed)
        except ConfigurationError as error:
            raise ConfigurationError(f"{name}: {error}") from None
    return limits
