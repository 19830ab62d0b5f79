"""Sinks that other packages bring, by the schemes of the addresses that they take: `nats://broker:4222`."""

from __future__ import annotations

from importlib.metadata import entry_points

from ragspan.config import Settings
from ragspan.exceptions import ConfigurationError
from ragspan.records import RecordSink

_GROUP = "ragspan_sink"


def sink_from(settings: Settings) -> RecordSink:
    """A new sink of the kind that is registered for the address in `settings.sink`.

    Raises:
        ConfigurationError: none is registered for it, or it cannot be made; the message holds no password of the address.
    """
    scheme = (settings.sink or "").partition("://")[0].lower()
    entries = {entry.name: entry for entry in entry_points(group=_GROUP)}
    if scheme not in entries:
        known = ", ".join(sorted(entries)) or "none"
        raise ConfigurationError(
            f"RAGSPAN_SINK has an address of the kind {scheme!r}, but no installed package takes records there "
            f"(there are: {known}); ragspan's own are in packages such as ragspan-{scheme}"
        )
    try:
        make = entries[scheme].load()
    except ImportError as error:
        raise ConfigurationError(
            f"RAGSPAN_SINK has an address of the kind {scheme!r}, whose package cannot be loaded: {error}"
        ) from error
    sink: RecordSink = make(settings)
    return sink
