"""A server that answers byte by byte what a test tells it to: what a hostile server, or a broken proxy, may send."""

from __future__ import annotations

import contextlib
import socket
import threading

HOST = "127.0.0.1"


class RawServer:
    """Answers each request with the pieces that `answer()` yields, and closes the connection then.

    `requests` are the heads that came, `sent` the bytes that went out, and `is_hung_up` is set when a client has gone before its end.
    """

    def __init__(self, answer):
        self._answer = answer
        self.requests = []
        self.sent = 0
        self.is_hung_up = threading.Event()
        self._is_over = threading.Event()
        self._socket = socket.create_server((HOST, 0))
        self.port = self._socket.getsockname()[1]
        self.url = f"http://{HOST}:{self.port}"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._is_over.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for thread in self._threads:
            thread.join()

    def _accept(self):
        with contextlib.suppress(OSError):
            while not self._is_over.is_set():
                connection, _ = self._socket.accept()
                self._threads.append(threading.Thread(target=self._serve, args=(connection,)))
                self._threads[-1].start()

    def _serve(self, connection):
        with contextlib.suppress(OSError), connection:
            connection.settimeout(60)
            with connection.makefile("rb") as reading:  # all of it: what is unread resets the connection at its end
                lines = [reading.readline()]
                while lines[-1].strip():
                    lines.append(reading.readline())
                length = next((line for line in lines if line.lower().startswith(b"content-length:")), b":0")
                reading.read(int(length.split(b":")[1]))
            self.requests.append(b"".join(lines))
            try:
                for piece in self._answer():
                    connection.sendall(piece)
                    self.sent += len(piece)
                    if self._is_over.is_set():
                        return
            except ConnectionError:
                self.is_hung_up.set()


def head(length, **headers):
    """The head of a success with this length of a body."""
    lines = {"Content-Type": "application/json", "Content-Length": length, **headers}
    return b"HTTP/1.1 200 OK\r\n%s\r\n" % "".join(f"{name}: {value}\r\n" for name, value in lines.items()).encode()
