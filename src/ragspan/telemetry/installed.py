"""Emitters that other packages bring, by the names under which they register."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from ragspan.config import CaptureContent
from ragspan.exceptions import ConfigurationError
from ragspan.telemetry.base import BackendEmitter, Emitter

_GROUP = "ragspan_emitter"
_OUR_BACKENDS = {"phoenix", "mlflow"}


def installed_emitter(name: str) -> Emitter:
    """A new emitter of the kind that is registered as `name`, which finds its settings in the environment.

    Raises:
        ConfigurationError: none is registered under this name, or it cannot be made; the message says why.
    """
    emitter: Emitter = _registered(name)()
    return emitter


def backend_emitter(name: str, address: str, *, capture_content: CaptureContent) -> BackendEmitter:
    """A new emitter of the kind that is registered as `name`, for the backend at this address.

    Raises:
        ConfigurationError: none is registered under this name, or it cannot be made; the message says why.
    """
    emitter: BackendEmitter = _registered(name).at(address, capture_content=capture_content)
    return emitter


def _registered(name: str) -> Any:
    entries = {entry.name: entry for entry in entry_points(group=_GROUP)}
    if name not in entries:
        known = ", ".join(sorted({"otel", "console", *entries}))
        own = f"; pip install ragspan-{name} brings it" if name in _OUR_BACKENDS else ""
        raise ConfigurationError(f"there is no emitter {name!r} here (there are: {known}){own}")
    try:
        return entries[name].load()
    except ImportError as error:
        raise ConfigurationError(f"the emitter {name!r} cannot be loaded: {error}") from error
