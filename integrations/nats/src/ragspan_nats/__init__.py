"""ragspan on NATS JetStream: applications publish their answers, and a fleet of workers scores them."""

from __future__ import annotations

from ragspan_nats.access import BrokerAccess
from ragspan_nats.sink import NatsSink, SinkStats
from ragspan_nats.streams import StreamLimits

__all__ = ["BrokerAccess", "NatsSink", "SinkStats", "StreamLimits"]
