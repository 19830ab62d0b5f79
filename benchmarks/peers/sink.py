"""Takes whatever is exported, and answers as far as the exporters need it.

    python -m peers.sink

The first part of a path names who sends. `GET /counts` tells how many requests and bytes came from each.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections import defaultdict

from serving.processes import HOST, say

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_MLFLOW_VERSION = b"3.17.0"
_MLFLOW_KEEPS_SPANS = ("mlflow.trace.spansLocation", "TRACKING_STORE")


class Sink:
    """Counts by sender."""

    def __init__(self) -> None:
        self._requests: defaultdict[str, int] = defaultdict(int)
        self._bytes: defaultdict[str, int] = defaultdict(int)

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        gone = (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError)
        with contextlib.suppress(*gone), contextlib.closing(writer):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = head.lower().partition("content-length:")[2].partition("\r\n")[0].strip()
                body = await reader.readexactly(int(length or 0))
                reply = self._answer(head.split()[1].lstrip("/"), body)
                writer.write(_HEAD % len(reply) + reply)
                await writer.drain()

    def _answer(self, path: str, body: bytes) -> bytes:
        if path == "counts":
            counts = {name: {"requests": self._requests[name], "bytes": self._bytes[name]} for name in self._requests}
            return json.dumps(counts).encode()
        sender = path.partition("/")[0]
        self._requests[sender] += bool(body)
        self._bytes[sender] += len(body)
        if path.endswith("/version"):
            return _MLFLOW_VERSION
        if path.endswith("/mlflow/traces"):
            return registered_trace(body)
        return b'{"success": true, "data": {"id": "1"}}'


def registered_trace(body: bytes) -> bytes:
    """What MLflow's server answers when it is told of a trace whose spans it has already."""
    trace = json.loads(body)
    name, value = _MLFLOW_KEEPS_SPANS
    trace["trace"]["trace_info"].setdefault("tags", {})[name] = value
    return json.dumps(trace).encode()


async def serve() -> None:
    server = await asyncio.start_server(Sink().converse, HOST)
    say(port=server.sockets[0].getsockname()[1])
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()


if __name__ == "__main__":
    asyncio.run(serve())
