"""A load of requests at fixed times, whether or not those before were answered.

    python -m serving.load PORT [--rate 100] [--warm-up 3] [--seconds 20]

The latency of a request counts from the time at which it was due, not from the time at which it was sent: a server that
stalls cannot hide behind a client that waits for it. How late requests were sent is told as well; it is part of the
latency, and the same with every server.

It prints a line when the warm-up is over, and a last one with the latencies of the requests after that.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time

from serving.processes import HOST, say

_LIMIT = 30.0
"""Seconds until a request counts as failed."""


class Load:
    """Sends requests on connections that are kept, as many as are needed at the same time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.latencies: list[float] = []
        self.lateness: list[float] = []
        self.errors: list[str] = []

    async def request(self, number: int, due: float) -> None:
        loop = asyncio.get_running_loop()
        self.lateness.append(loop.time() - due)
        try:
            await asyncio.wait_for(self._get(f"/answer?number={number}"), _LIMIT)
        except (OSError, EOFError, ValueError, asyncio.TimeoutError) as error:
            self.errors.append(repr(error))
        self.latencies.append(loop.time() - due)

    async def _get(self, target: str) -> None:
        reader, writer = self._idle.pop() if self._idle else await asyncio.open_connection(HOST, self._port)
        writer.write(f"GET {target} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length))
        if not head.startswith(b"HTTP/1.1 200"):
            writer.close()
            raise ValueError(head[:30].decode("latin-1"))
        self._idle.append((reader, writer))

    async def run(self, *, first: int, count: int, interval: float) -> None:
        """Send so many requests, and wait for their answers."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        tasks = []
        for place in range(count):
            due = began + place * interval
            await asyncio.sleep(due - loop.time())
            tasks.append(asyncio.create_task(self.request(first + place, due)))
        await asyncio.gather(*tasks)

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()


async def generate(port: int, *, rate: float, warm_up: float, seconds: float) -> None:
    gc.disable()  # it makes no garbage to speak of, and would stall itself
    warming, measured = round(warm_up * rate), round(seconds * rate)
    load = Load(port)
    await load.run(first=0, count=warming, interval=1 / rate)
    say(measuring=True)
    load.latencies.clear()
    load.lateness.clear()
    before = time.process_time()
    await load.run(first=warming, count=measured, interval=1 / rate)
    say(
        requests=warming + measured,
        latencies_ms=[round(latency * 1000, 3) for latency in load.latencies],
        lateness_ms=[round(late * 1000, 3) for late in load.lateness],
        cpu_seconds=time.process_time() - before,
        errors=load.errors[:10],
    )
    load.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Sends requests at a steady rate.")
    parser.add_argument("port", type=int)
    parser.add_argument("--rate", type=float, default=100.0, help="requests a second")
    parser.add_argument("--warm-up", type=float, default=3.0, help="seconds that are not measured")
    parser.add_argument("--seconds", type=float, default=20.0, help="seconds that are measured")
    arguments = parser.parse_args()
    say(port=0)
    asyncio.run(generate(arguments.port, rate=arguments.rate, warm_up=arguments.warm_up, seconds=arguments.seconds))


if __name__ == "__main__":
    main()
