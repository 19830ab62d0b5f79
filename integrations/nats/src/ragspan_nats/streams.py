"""The streams on the broker: records that wait for a worker, and dead letters.

Each is made where it is missing, with its limits. One that is there is left as it is: its limits are its owner's business.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ragspan.config import variable
from ragspan.exceptions import ConfigurationError

if TYPE_CHECKING:
    from nats.js import JetStreamContext
    from nats.js.api import StreamConfig

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SECONDS = ("max_age", "duplicate_window", "dead_letter_age")
_WHOLE_NUMBERS = {"max_records": math.inf, "max_bytes": math.inf, "dead_letter_bytes": math.inf, "replicas": 5}
_LIMITS = {
    "RAGSPAN_NATS_MAX_RECORDS": "max_records",
    "RAGSPAN_NATS_MAX_BYTES": "max_bytes",
    "RAGSPAN_NATS_REPLICAS": "replicas",
}
_IN_USE = 10058  # the stream is there, with other settings than those that we would have made it with


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamNames:
    """What a fleet's streams, subjects and consumer are called; all of it follows from the stream's name.

    Raises:
        ConfigurationError: the name cannot be a stream's.
    """

    stream: str = "ragspan"
    """Letters, digits, `-` and `_`."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.stream):
            raise ConfigurationError(f"stream is {self.stream!r}, but should be letters, digits, '-' and '_'")

    @property
    def records(self) -> str:
        """The subject that records are published to."""
        return f"{self.stream}.records"

    @property
    def consumer(self) -> str:
        """The consumer that all workers share."""
        return f"{self.stream}-workers"

    @property
    def dead_stream(self) -> str:
        """The stream of dead letters."""
        return f"{self.stream}-dead-letters"

    @property
    def dead_letters(self) -> str:
        """The subject that dead letters are published to."""
        return f"{self.stream}.dead_letters"


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamLimits:
    """How much the streams may hold, where they are made by us.

    Raises:
        ConfigurationError: a limit is out of its range.
    """

    max_records: int = 100_000
    """Records that may wait; a stream that is full takes no more until workers have made room."""
    max_bytes: int = 1024 * 1024 * 1024
    """Their bytes, likewise; but nats-server before 2.10.5 takes some records at this limit for smaller than they are, and gives up
    the oldest of those that wait in their place. Where it may be such a server, `max_records` should be what is reached first."""
    max_age: float = 3 * 24 * 3600.0
    """Seconds after which a record that nobody scored is given up by the broker."""
    duplicate_window: float = 600.0
    """Seconds for which the stream knows a record that it has had; memory of the broker grows with it."""
    dead_letter_bytes: int = 256 * 1024 * 1024
    """Of the dead letters; the oldest make room for new ones."""
    dead_letter_age: float = 30 * 24 * 3600.0
    """Seconds after which a dead letter is given up."""
    replicas: int = 1
    """Servers of the cluster that keep a copy, 1 to 5; 3 lose nothing when one server does."""

    def __post_init__(self) -> None:
        for name in _SECONDS:
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 < value < math.inf:
                raise ConfigurationError(f"{name} is {value!r}, but should be seconds, more than 0")
        for name, most in _WHOLE_NUMBERS.items():
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= most:
                allowed = "at least 1" if most == math.inf else f"from 1 to {most}"
                raise ConfigurationError(f"{name} is {value!r}, but should be a whole number, {allowed}")


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


async def ensure_streams(jetstream: JetStreamContext, names: StreamNames, limits: StreamLimits) -> None:
    """Make the streams that are missing.

    Raises:
        nats.errors.Error: the broker does not let us, or cannot.
    """
    from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig

    records = StreamConfig(
        name=names.stream,
        description="Answers that wait to be scored by ragspan's workers",
        subjects=[names.records],
        retention=RetentionPolicy.WORK_QUEUE,  # what is acknowledged is gone
        discard=DiscardPolicy.NEW,  # a full stream says so, and the sink counts it
        max_msgs=limits.max_records,
        max_bytes=limits.max_bytes,
        max_age=limits.max_age,
        duplicate_window=min(limits.duplicate_window, limits.max_age),
        storage=StorageType.FILE,
        num_replicas=limits.replicas,
    )
    dead_letters = StreamConfig(
        name=names.dead_stream,
        description="Records that ragspan's workers could not score, with the reasons",
        subjects=[names.dead_letters],
        retention=RetentionPolicy.LIMITS,
        discard=DiscardPolicy.OLD,  # a worker that could not put a message aside would be stopped by it
        max_bytes=limits.dead_letter_bytes,
        max_age=limits.dead_letter_age,
        duplicate_window=min(limits.duplicate_window, limits.dead_letter_age),
        storage=StorageType.FILE,
        num_replicas=limits.replicas,
    )
    await _ensure_stream(jetstream, names.stream, records)
    await _ensure_stream(jetstream, names.dead_stream, dead_letters)


async def _ensure_stream(jetstream: JetStreamContext, name: str, config: StreamConfig) -> None:
    from nats.js.errors import APIError, NotFoundError

    try:
        await jetstream.stream_info(name)
    except NotFoundError:
        try:
            await jetstream.add_stream(config)
        except APIError as error:
            if error.err_code != _IN_USE:  # somebody else has made it in this very moment
                raise


async def ensure_consumer(
    jetstream: JetStreamContext, names: StreamNames, *, ack_wait: float, max_ack_pending: int
) -> None:
    """Make the workers' consumer, or give it these settings.

    It delivers a message for as long as nobody acknowledges it: how often is enough the workers decide, who can then put it
    aside together with the reason. A limit of the consumer's own would leave the message in the stream, out of reach.

    Args:
        jetstream: the broker.
        names: of the stream.
        ack_wait: seconds without a sign from a worker after which a message goes to another.
        max_ack_pending: messages that all workers together may have in flight.

    Raises:
        nats.errors.Error: the broker does not let us, or cannot.
    """
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

    await jetstream.add_consumer(
        names.stream,
        ConsumerConfig(
            durable_name=names.consumer,
            filter_subject=names.records,  # whoever made the stream may keep other things there
            deliver_policy=DeliverPolicy.ALL,
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=ack_wait,
            max_deliver=-1,
            max_ack_pending=max_ack_pending,
        ),
    )
