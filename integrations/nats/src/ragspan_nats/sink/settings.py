"""The sink that `RAGSPAN_SINK=nats://...` stands for."""

from __future__ import annotations

from ragspan.config import Settings
from ragspan.exceptions import ConfigurationError
from ragspan_nats.access import BrokerAccess
from ragspan_nats.sink.nats_sink import NatsSink
from ragspan_nats.streams import stream_name


def sink_from_settings(settings: Settings) -> NatsSink:
    """A sink for the broker that the settings name, with the stream, its limits and the credentials of `RAGSPAN_NATS_*`.

    Raises:
        ConfigurationError: the address, a credential, the stream's name or a limit is wrong; the message holds no secret.
    """
    if settings.sink is None:
        raise ConfigurationError("RAGSPAN_SINK should be an address, such as 'nats://broker:4222'")
    return NatsSink(
        access=BrokerAccess.from_environment(settings.sink),
        stream=stream_name(),
        queue_size=settings.queue_size,
        queue_bytes=settings.queue_bytes,
        drop=settings.drop,
        exit_timeout=settings.exit_timeout,
        redact=settings.redact,
    )
