"""The HTTP client that all tools share, against a server on this machine."""

from __future__ import annotations

import gzip
import os

import pytest
from forked import in_child
from servers.scores import ScoreServer

from ragspan.tools import BatchRejected, ExportError, Unavailable
from ragspan.tools.http import MAX_REPLY, Endpoint, HttpClient


class Server(ScoreServer):
    keeps_connections = True

    def __init__(self):
        self.raw_replies = []
        super().__init__()

    def _answer(self, request):
        return self.raw_replies.pop() if self.raw_replies else super()._answer(request)

    def reply_to(self, request):
        return 200, {}


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    made = Server()
    yield made
    made.close()


@pytest.fixture
def call(server):
    clients = []

    def call(**given):
        clients.append(HttpClient(Endpoint(url=server.url, **given)))
        return clients[-1].call("GET", "/")

    yield call
    for client in clients:
        client.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_connections_are_kept_open_and_the_child_of_a_fork_has_one_of_its_own(server):
    client = HttpClient(Endpoint(url=server.url))
    client.call("GET", "/")

    assert in_child(lambda: client.call("GET", "/").is_ok)
    client.call("GET", "/")
    client.close()
    assert len(server.connections) == 2


@pytest.mark.parametrize(
    ("reply", "reason", "pause"),
    [
        ((503, "busy", {"Retry-After": "3"}), "http_503", 3.0),
        ((429, "", {"Retry-After": "Thu, 01 Jan 1970 00:01:40 GMT"}), "http_429", None),
        ((401, "who?"), "http_401", None),
        ((200, "<html>Please log in</html>"), "no_json", None),
        *(((status, ""), f"http_{status}", None) for status in (300, 399, 407, 408, 425, 502, 504)),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_server_that_takes_nothing_now_is_unavailable(server, call, reply, reason, pause):
    server.script.append(reply)

    with pytest.raises(Unavailable) as raised:
        call()

    assert (str(raised.value), raised.value.retry_after) == (reason, pause)


@pytest.mark.parametrize(
    ("status", "failure"),
    [(400, BatchRejected), (413, BatchRejected), (422, BatchRejected), (500, ExportError), (403, Unavailable)],
)
def test_a_status_says_whether_the_batch_or_the_server_is_the_reason(server, call, status, failure):
    server.script.append((status, '{"error": "a user\'s words"}'))

    reply = call()

    assert (reply.is_ok, reply.body) == (False, {"error": "a user's words"})
    with pytest.raises(failure, match=f"^http_{status}$"):
        reply.expect("data", "tool")


def test_an_exception_names_no_address(server, call):
    server.stop()

    with pytest.raises(Unavailable) as raised:
        call(headers={"authorization": "secret"})

    assert str(raised.value) == "no server listens there: connection refused"
    assert raised.value.__suppress_context__
    server.start()


@pytest.mark.parametrize("packing", [None, "gzip"])
def test_a_reply_that_reaches_its_bound_is_not_read_to_its_end(server, call, packing):
    content = b"[" + b" " * (MAX_REPLY - 1)
    body = gzip.compress(content) if packing else content
    server.raw_replies.append((200, {"Content-Encoding": packing} if packing else {}, body))

    with pytest.raises(Unavailable, match="reply_too_large"):
        call()


def test_no_request_follows_a_redirect(server, call):
    server.script.append((307, "", {"Location": "/elsewhere"}))

    with pytest.raises(Unavailable, match="http_307"):
        call()
    assert [request.path for request in server.requests] == ["/"]
