"""The arguments of a sink, checked where it is made."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ragspan.config import DropPolicy
from ragspan.exceptions import ConfigurationError
from ragspan.redaction import Redact
from ragspan_nats.access import BrokerAccess
from ragspan_nats.streams import StreamLimits, StreamNames


@dataclass(frozen=True, kw_only=True, slots=True)
class SinkOptions:
    """What `NatsSink` was given.

    Raises:
        ConfigurationError: an argument is wrong; the message names it, its value and what is allowed.
    """

    access: BrokerAccess
    names: StreamNames
    limits: StreamLimits
    queue_size: int
    queue_bytes: int
    drop: DropPolicy
    compress_above: int
    patience: float
    exit_timeout: float
    redact: Redact | None
    name: str

    def __post_init__(self) -> None:
        _require("access", self.access, "a BrokerAccess", fits=isinstance(self.access, BrokerAccess))
        _require("limits", self.limits, "StreamLimits", fits=isinstance(self.limits, StreamLimits))
        for name, least in (("queue_size", 1), ("queue_bytes", 1), ("compress_above", 0)):
            value = getattr(self, name)
            fits = type(value) is int and value >= least
            _require(name, value, f"a whole number, at least {least}", fits=fits)
        _require("drop", self.drop, "'oldest' or 'newest'", fits=self.drop in {"oldest", "newest"})
        for name in ("patience", "exit_timeout"):
            value = getattr(self, name)
            fits = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf
            _require(name, value, "a number of seconds, 0 or more", fits=fits)
        _require("name", self.name, "a text that is not empty", fits=type(self.name) is str and self.name != "")


def _require(argument: str, value: object, allowed: str, *, fits: bool) -> None:
    if fits:
        return
    shown = repr(value) if value is None or isinstance(value, (str, int, float)) else f"a {type(value).__name__}"
    raise ConfigurationError(f"{argument} is {shown}, but should be {allowed}")
