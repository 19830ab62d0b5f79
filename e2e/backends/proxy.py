"""Stands between an application and a tool, and behaves badly on demand."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

_HOP_BY_HOP = {"connection", "content-length", "host", "transfer-encoding", "content-encoding", "accept-encoding"}


class Proxy:
    """Passes requests on to `target`.

    `behave` is called with each request's path before that; it may take its time, and returns None, or the status and
    headers to answer in place of the tool.
    """

    def __init__(self, target: str) -> None:
        self.behave = lambda _path: None
        self.answered: list[tuple[str, int]] = []
        """The path and the status of each answer."""
        self._client = httpx.Client(base_url=target, timeout=60, trust_env=False)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._client.close()

    def _reply(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        instead = self.behave(path)
        if instead is not None:
            status, extra = instead
            return status, extra, b""
        reply = self._client.request(method, path, headers=headers, content=body)
        kept = {name: value for name, value in reply.headers.items() if name.lower() not in _HOP_BY_HOP}
        return reply.status_code, kept, reply.content

    def _handler(self):
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass_on(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
                if encoding := self.headers.get("Content-Encoding"):
                    headers["Content-Encoding"] = encoding
                status, kept, content = proxy._reply(self.command, self.path, headers, body)
                proxy.answered.append((self.path.partition("?")[0], status))
                try:
                    self.send_response(status)
                    for name, value in kept.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                except ConnectionError:
                    self.close_connection = True  # a client that had no more patience

            do_GET = do_POST = do_PATCH = do_DELETE = _pass_on

            def log_message(self, *args):
                pass

        return Handler
