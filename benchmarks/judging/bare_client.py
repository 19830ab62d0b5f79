"""The bare protocol: prepared requests over kept connections. What the endpoint itself can do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from http import HTTPStatus
from urllib.parse import urlsplit

from judging.job import MODEL, Answer, Endpoint


class BareClient:
    """As many connections as the concurrency, each with one request at a time."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def judge(self, answers: list[Answer]) -> int:
        prepared = [request(answer, self._endpoint) for answer in answers]
        return asyncio.run(self._send(prepared))

    def close(self) -> None:
        pass

    async def _send(self, requests: list[bytes]) -> int:
        waiting = iter(requests)
        served = await asyncio.gather(*(self._converse(waiting) for _ in range(self._endpoint.concurrency)))
        return sum(served)

    async def _converse(self, waiting: Iterator[bytes]) -> int:
        address = urlsplit(self._endpoint.base_url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        served = 0
        with closing(writer):
            for prepared in waiting:
                writer.write(prepared)
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                await reader.readexactly(int(head.partition("content-length:")[2].partition("\r\n")[0]))
                served += head.split()[1] == str(HTTPStatus.OK.value)
        return served


def request(answer: Answer, endpoint: Endpoint) -> bytes:
    """A request of about the size that a judge sends."""
    address = urlsplit(endpoint.base_url)
    content = "\n\n".join([*answer.passages, answer.question, answer.response])
    body = json.dumps({"model": MODEL, "n": 3, "messages": [{"role": "user", "content": content}]}).encode()
    head = f"POST {address.path}/chat/completions HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
