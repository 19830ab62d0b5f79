"""A web server that streams answers to real clients, one of which leaves.

What the tests rely on: the model waits where a test tells it to, so that a client leaves in the middle of an answer for
certain; the sink tells when a record has arrived. Nothing waits for a time to pass.
"""

from __future__ import annotations

import gc
import http.client
import socket
import threading
from contextlib import closing, contextmanager

import pytest
import uvicorn
from captures import Answered, Captures, CollectingSink
from li_programs import ANSWER, CELLO, HARP, engine
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

PATIENCE = 20  # seconds, until a test gives up


def streaming():
    return engine(streaming=True, response_mode="tree_summarize")


def stream_synchronously(request):
    """Starlette pulls every token in a thread and a context of its own."""
    return StreamingResponse(streaming().query(request.query_params["q"]).response_gen)


async def stream_asynchronously(request):
    response = await streaming().aquery(request.query_params["q"])
    return StreamingResponse(response.response_gen)


async def answer_at_once(request):
    return PlainTextResponse(str(await engine().aquery(request.query_params["q"])))


class SignallingSink(CollectingSink):
    """Tells when a capture has arrived."""

    def __init__(self):
        super().__init__()
        self.arrived = threading.Event()

    def submit(self, capture):
        super().submit(capture)
        self.arrived.set()


@pytest.fixture
def served(new_captures):
    """A server on a port of its own, and what is captured of its answers."""
    routes = [
        Route("/threads", stream_synchronously),
        Route("/tasks", stream_asynchronously),
        Route("/at-once", answer_at_once),
    ]
    config = uvicorn.Config(Starlette(routes=routes), log_config=None, lifespan="off", ws="none", http="h11")
    server = uvicorn.Server(config)
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Served(listening.getsockname()[1], new_captures(SignallingSink()))
        finally:
            server.should_exit = True
            thread.join(PATIENCE)


class Served:
    def __init__(self, port: int, captured: Captures) -> None:
        self.port = port
        self.captured = captured

    @contextmanager
    def get(self, path, question="strings"):
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)) as connection:
            connection.request("GET", f"{path}?q={question}")
            with closing(connection.getresponse()) as response:
                yield response

    def answer(self):
        """The record of the only request, once it has arrived.

        A synchronous generator that its server leaves may be part of a cycle, which only the garbage collector finds.
        """
        for _ in range(PATIENCE * 10):
            if self.captured.sink.arrived.wait(0.1):
                break
            gc.collect()
        return self.captured.answer()


@pytest.mark.parametrize("path", ["/threads", "/tasks", "/at-once"])
def test_an_answer_that_the_client_reads_to_its_end(served, path):
    with served.get(path) as response:
        assert response.read().decode() == ANSWER

    assert served.answer() == Answered("strings", [CELLO, HARP], ANSWER)
