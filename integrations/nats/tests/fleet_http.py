"""A server on this machine that speaks enough of HTTP for the clients of a worker: its judge's and its exporter's."""

from __future__ import annotations

import contextlib
import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOST = "127.0.0.1"


class LocalHttp:
    """Answers POST requests in a thread each, with what `reply(path, headers, body)` returns: a status, headers and a body.

    Args:
        listening: whether it can be reached from the start, or refuses connections until `listen()`.
    """

    def __init__(self, reply, *, listening=True):
        self._reply = reply
        self._server = _Server((HOST, 0), self._handler(), bind_and_activate=False)
        self._server.server_bind()
        self.url = f"http://{HOST}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        if listening:
            self.listen()

    def listen(self):
        self._server.server_activate()
        self._thread.start()

    def close(self):
        if self._thread.ident is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def _handler(self):
        local = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle(self):
                with contextlib.suppress(ConnectionError):  # a worker that was killed
                    super().handle()

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                status, headers, content = local._reply(self.path, self.headers, body)
                self.send_response(status)
                for name, text in headers.items():
                    self.send_header(name, text)
                self.send_header("Content-Length", str(len(content)))
                self._headers_buffer.append(b"\r\n" + content)  # one packet for all of it
                self.flush_headers()

            def log_message(self, *args):
                pass

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # connections of all workers at once
