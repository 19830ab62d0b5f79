"""A cluster of real brokers for tests, which keep copies of each other's streams."""

from __future__ import annotations

import time

from nats.errors import Error, NoServersError
from waiting import until

from servers.broker import HOST, Broker, BrokerView, unused_port

_SIZE = 3
_PATIENCE = 60.0  # seconds; an election takes some, and brokers start one after another
_PAUSE = 0.2


class Cluster(BrokerView):
    """Three brokers on loopback.

    Args:
        folder: where they keep what is theirs.
    """

    view = {}

    def __init__(self, folder):
        ports = [unused_port() for _ in range(_SIZE)]
        routes = ", ".join(f'"nats-route://{HOST}:{port}"' for port in ports)
        self.brokers = [
            Broker(
                folder / f"member-{number}",
                config=f'server_name: "member-{number}"\n'
                f'cluster {{ name: "tests", listen: "{HOST}:{port}", routes: [{routes}] }}',
            )
            for number, port in enumerate(ports)
        ]

    @property
    def url(self):
        """All of them, also those that are away."""
        return ",".join(broker.url for broker in self.brokers)

    @property
    def way_in(self):
        """One of those that run."""
        return next(broker.url for broker in self.brokers if broker.is_running)

    def start(self):
        for broker in self.brokers:
            broker.start()
        self.ask(lambda client: client.jetstream().account_info())

    def leader_of(self, stream):
        """The broker that decides about a stream."""
        leader = until(lambda: self._leader_of(stream), what=f"a leader of {stream}", patience=_PATIENCE)
        return self.brokers[int(leader.removeprefix("member-"))]

    def copies_of(self, stream):
        """Brokers that hold all of a stream, its leader included."""
        cluster = self.ask(lambda client: client.jetstream().stream_info(stream)).cluster
        return 1 + sum(bool(replica.current) for replica in cluster.replicas or ())

    def ask(self, question):
        """As a broker's, but asked again while the brokers have to agree on something."""
        limit = time.monotonic() + _PATIENCE
        while True:
            try:
                return super().ask(question)
            except (Error, NoServersError, OSError):
                if time.monotonic() > limit:
                    raise
            time.sleep(_PAUSE)

    def close(self):
        for broker in self.brokers:
            broker.close()

    def _leader_of(self, stream):
        return self.ask(lambda client: client.jetstream().stream_info(stream)).cluster.leader
