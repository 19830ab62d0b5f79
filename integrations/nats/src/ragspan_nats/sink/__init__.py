"""The sink: publishes what handlers capture, for workers elsewhere to score."""

from __future__ import annotations

from ragspan_nats.sink.nats_sink import NatsSink
from ragspan_nats.sink.settings import sink_from_settings
from ragspan_nats.sink.stats import SinkStats

__all__ = ["NatsSink", "SinkStats", "sink_from_settings"]
