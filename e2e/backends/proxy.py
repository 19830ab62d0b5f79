"""Stands between an application and a tool, and behaves badly on demand."""

from __future__ import annotations

import httpx
from servers.http import LocalHttp, Request

_HOP_BY_HOP = {"connection", "content-length", "host", "transfer-encoding", "content-encoding", "accept-encoding"}


class Proxy(LocalHttp):
    """Passes requests on to `target`.

    `behave` is called with each request's path before that; it may take its time, and returns None, or the status and
    headers to answer in place of the tool.
    """

    def __init__(self, target: str) -> None:
        self.behave = lambda _path: None
        self.answered: list[tuple[str, int]] = []
        """The path and the status of each answer."""
        self._client = httpx.Client(base_url=target, timeout=60, trust_env=False)
        super().__init__(self._pass_on)

    def close(self) -> None:
        super().close()
        self._client.close()

    def _pass_on(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        instead = self.behave(request.path)
        if instead is not None:
            answer = (*instead, b"")
        else:
            headers = _passed_on(request.headers)
            reply = self._client.request(
                request.method, request.path, params=request.query, headers=headers, content=request.body
            )
            answer = (reply.status_code, _passed_on(reply.headers), reply.content)
        self.answered.append((request.path, answer[0]))
        return answer


def _passed_on(headers):
    return {name: value for name, value in headers.items() if name.lower() not in _HOP_BY_HOP}
