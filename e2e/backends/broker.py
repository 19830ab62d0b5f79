"""A NATS server with JetStream, as the tests start it and ask it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import httpx

from backends.server import Server, free_port


class Broker(Server):
    """A broker with its streams in a folder."""

    def __init__(self, folder: Path, *, log: Path) -> None:
        program = shutil.which("nats-server", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        assert program is not None, "no nats-server; Debian and Ubuntu: apt install nats-server"
        port, page = free_port(), free_port()
        super().__init__(
            command=[program, "-js", "-a", "127.0.0.1", "-p", str(port), "-m", str(page), "-sd", str(folder)],
            environment={},
            url=f"http://127.0.0.1:{page}",
            health="/healthz",
            log=log,
        )
        self.address = f"nats://127.0.0.1:{port}"

    def messages(self, stream: str) -> int:
        """How many wait in a stream."""
        page = httpx.get(f"{self.url}/jsz?streams=true", timeout=30, trust_env=False).raise_for_status().json()
        streams = page["account_details"][0]["stream_detail"]
        return next(one["state"]["messages"] for one in streams if one["name"] == stream)
