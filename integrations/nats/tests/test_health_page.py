"""The health page, asked by HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket

import pytest
from brokers import until

from ragspan.config import Settings
from ragspan.exceptions import ConfigurationError
from ragspan_nats import command
from ragspan_nats import worker as worker_module
from ragspan_nats.command import HealthPage
from ragspan_nats.settings import BrokerAccess, WorkerOptions
from ragspan_nats.worker import Worker, WorkerStats

COUNTS = {"in_flight": 0, "acknowledged": 0, "nacked": {}, "dead_lettered": {}}


def well():
    return WorkerStats(ready=True)


@pytest.fixture
def make_page():
    made = []

    def make(look=well, address="127.0.0.1:0"):
        made.append(HealthPage(address, look))
        made[-1].start()
        return made[-1]

    yield make
    for page in made:
        page.stop()


@pytest.fixture
def connect():
    """Makes connections to a page, and ends them."""
    made = []

    def make(page):
        host, port = page.address.rsplit(":", 1)
        made.append(socket.create_connection((host, int(port)), timeout=20))
        return made[-1]

    yield make
    for connection in made:
        connection.close()


def ask(page, path):
    """The status and the page."""
    connection = http.client.HTTPConnection(page.address, timeout=20)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        assert response.headers["Content-Type"] == "application/json"
        return response.status, json.loads(body)
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("is_alive", "is_ready", "healthz", "readyz"),
    [(True, True, 200, 200), (True, False, 200, 503), (False, True, 503, 503), (False, False, 503, 503)],
)
def test_the_status_says_whether_all_is_well(make_page, is_alive, is_ready, healthz, readyz):
    page = make_page(lambda: WorkerStats(alive=is_alive, ready=is_ready))

    assert ask(page, "/healthz") == (healthz, {"alive": is_alive, "ready": is_ready, **COUNTS})
    assert ask(page, "/readyz?probe=1")[0] == readyz
    assert ask(page, "/metrics") == (404, {"error": "there are /healthz and /readyz"})


def test_who_hangs_up_early_or_says_nothing_disturbs_nobody(make_page, connect, capfd):
    page = make_page()
    connect(page)
    rude = connect(page)
    rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset, not a farewell
    rude.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
    rude.close()

    assert [ask(page, "/healthz")[0] for _ in range(3)] == [200] * 3
    assert capfd.readouterr().err == ""


def test_there_is_a_bound_on_connections_and_silent_ones_end(make_page, connect, monkeypatch):
    monkeypatch.setattr(command._Request, "timeout", 0.5)
    page = make_page()
    silent = [connect(page) for _ in range(2 * command._MAX_CONNECTIONS)]

    assert silent[-1].recv(1) == b""  # at once: there is no room
    assert silent[0].recv(1) == b""
    until(lambda: page._room._value == command._MAX_CONNECTIONS, what="room")
    assert ask(page, "/healthz")[0] == 200


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST /healthz HTTP/1.1\r\n\r\n", 501),
        (b"GET \xff HTTP/1.1\r\n\r\n", 404),
        (b"GET /healthz HTTP/1.1\r\nX: " + b"y" * 65_536 + b"\r\n\r\n", 431),
        (b"HEAD /healthz HTTP/1.1\r\n\r\n", 200),
    ],
    ids=["another method", "no path", "too long", "head"],
)
def test_requests_of_other_kinds_are_answered_without_a_word_in_the_log(make_page, connect, capfd, request_, status):
    connection = connect(make_page())
    connection.sendall(request_)
    assert connection.recv(100).startswith(f"HTTP/1.0 {status} ".encode())
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("address", ["8080", "localhost", "localhost:http", "127.0.0.1:", "127.0.0.1:99999", ":-1", ""])
def test_an_invalid_address_is_named(address):
    with pytest.raises(ConfigurationError, match="health page") as refusal:
        HealthPage(address, well)
    assert address in str(refusal.value)


def test_an_address_that_is_taken_is_named(make_page):
    page = make_page()

    with pytest.raises(ConfigurationError, match=f"cannot be served at {page.address}"):
        HealthPage(page.address, well)


@pytest.fixture
def worker_of(monkeypatch):
    """Workers that print what they export."""
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")

    def make(broker):
        options = WorkerOptions(drain_timeout=0.0, ack_wait=3.0)
        return Worker(BrokerAccess(url=broker.url), Settings(), options=options)

    return make


async def test_a_loop_that_hangs_is_seen_and_so_is_its_recovery(make_page, broker, monkeypatch, worker_of):
    """A real worker, whose event loop a test brings to a standstill."""
    monkeypatch.setattr(worker_module, "_TICK", 0.05)
    monkeypatch.setattr(worker_module, "_HANGS", 2.0)
    worker = worker_of(broker)
    page = make_page(worker.stats)
    running = asyncio.create_task(worker.run())
    await asyncio.to_thread(until, lambda: ask(page, "/readyz")[0] == 200)
    seen = []

    def stand_still():
        until(lambda: seen.append(ask(page, "/healthz")[0]) or seen[-1] == 503, what="a loop that hangs to be seen")

    asyncio.get_running_loop().call_soon(stand_still)
    await asyncio.to_thread(until, lambda: seen and seen[-1] == 503)

    assert seen[0] == 200
    await asyncio.to_thread(until, lambda: ask(page, "/healthz")[0] == 200)
    worker.stop()
    await asyncio.wait_for(running, 20)
    assert ask(page, "/readyz")[0] == 503


async def test_a_worker_without_its_broker_is_well_but_not_ready(make_page, make_broker, worker_of):
    worker = worker_of(make_broker())
    page = make_page(worker.stats)
    running = asyncio.create_task(worker.run())

    found = await asyncio.to_thread(ask, page, "/healthz")
    assert found == (200, {"alive": True, "ready": False, **COUNTS})
    assert (await asyncio.to_thread(ask, page, "/readyz"))[0] == 503
    worker.stop()
    await asyncio.wait_for(running, 20)
