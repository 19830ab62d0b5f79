"""Request metadata that scores are told apart by: a release, a prompt's version, a tenant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ragspan.config import DIMENSION_NAMES
from ragspan.records import RagRecord
from ragspan.telemetry.semconv import DIMENSION_OTHER, dimension_attribute
from ragspan.telemetry.values import named

MAX_VALUES = 50
"""Values of one dimension that metrics tell apart, in each process: each is a series of its own."""


@dataclass(frozen=True, slots=True)
class Dimensions:
    """The entries of a record's metadata that go on spans, events and metrics.

    Any number of threads may use it: two that bring a new value at the same moment may both find room for it.

    Raises:
        ConfigurationError: a name is no such key, or there are too many.
    """

    names: Sequence[str] = ()
    """Keys of the metadata, at most five; all others stay where they are."""
    _values: dict[str, dict[str, None]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        DIMENSION_NAMES.check("dimensions", self.names)
        object.__setattr__(self, "names", tuple(self.names))

    def of(self, record: RagRecord) -> Mapping[str, str]:
        """The attributes of spans and events: what the record has, as text."""
        return {dimension_attribute(name): value for name, value in self._found(record)}

    def bounded(self, record: RagRecord) -> Mapping[str, str]:
        """The attributes of metrics: the first values of each dimension, and `_OTHER` for all that come later."""
        return {dimension_attribute(name): self._bounded(name, value) for name, value in self._found(record)}

    def _found(self, record: RagRecord) -> list[tuple[str, str]]:
        values = ((name, record.metadata.get(name)) for name in self.names)
        return [(name, named(str(value))) for name, value in values if isinstance(value, (str, int, float))]

    def _bounded(self, name: str, value: str) -> str:
        known = self._values.setdefault(name, {})
        if value not in known:
            if len(known) >= MAX_VALUES:
                return DIMENSION_OTHER
            known[value] = None
        return value
