"""ragspan on NATS JetStream: applications publish their answers, and a fleet of workers scores them."""

from __future__ import annotations

from ragspan_nats.settings import BrokerAccess, Stream
from ragspan_nats.sink import NatsSink

__all__ = ["BrokerAccess", "NatsSink", "Stream"]
