"""Emitters that other packages bring, by the names under which they register."""

from __future__ import annotations

from importlib.metadata import entry_points

from ragspan.exceptions import ConfigurationError
from ragspan.telemetry.base import Emitter

_GROUP = "ragspan_emitter"


def installed_emitter(name: str) -> Emitter:
    """A new emitter of the kind that is registered as `name`, which finds its settings in the environment.

    Raises:
        ConfigurationError: none is registered under this name, or it cannot be made; the message says why.
    """
    entries = {entry.name: entry for entry in entry_points(group=_GROUP)}
    if name not in entries:
        known = ", ".join(sorted({"otel", *entries}))
        raise ConfigurationError(
            f"RAGSPAN_EMITTERS names {name!r}, but no such emitter is installed (there are: {known}); "
            f"those of ragspan's own are in packages such as ragspan-{name}"
        )
    try:
        make = entries[name].load()
    except ImportError as error:
        raise ConfigurationError(f"RAGSPAN_EMITTERS names {name!r}, which cannot be loaded: {error}") from error
    emitter: Emitter = make()
    return emitter
