"""Servers and Celery's workers that the deploy table does not have: real requests, and SIGTERM while a judge is being asked."""

from __future__ import annotations

import signal
import time
import urllib.error
import urllib.request

import pytest

pytestmark = pytest.mark.slow

WSGI = """
import ragspan

def application(environment, start_response):
    name = environment["PATH_INFO"].strip("/")
    with ragspan.capture(question="Why?", sink=engine, name=name) as captured:
        captured.contexts = ["Because."]
        captured.response = "Because."
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]
"""

ASGI = """
import contextlib

import anyio
import ragspan
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

@contextlib.asynccontextmanager
async def lifespan(application):
    yield
    await anyio.to_thread.run_sync(engine.shutdown)

async def give_answer(request):
    with ragspan.capture(question="Why?", sink=engine, name=request.path_params["name"]) as captured:
        captured.contexts = ["Because."]
        captured.response = "Because."
    return PlainTextResponse(str(os.getpid()))

application = Starlette(routes=[Route("/{name}", give_answer)], lifespan=lifespan)
"""


BARE_ASGI = ASGI.replace("await anyio.to_thread.run_sync(engine.shutdown)", "pass")
"""The same, with nothing of ragspan's in the lifespan."""


GUNICORN = ("-m", "gunicorn", "--workers=2", "--bind=127.0.0.1:0", "--no-control-socket")


def get(address, name):
    """The process that answered. uvicorn that reloads says that it has started a moment before it listens."""
    deadline = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(f"{address}/{name}", timeout=30) as reply:
                return int(reply.read())
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError) or time.monotonic() > deadline:
                raise


LATE = """
import contextlib, uvicorn
from starlette.applications import Starlette

@contextlib.asynccontextmanager
async def lifespan(application):
    import program
    application.routes.extend(program.application.routes)
    yield

uvicorn.run(Starlette(lifespan=lifespan), port=0)
"""
"""An engine that is made when uvicorn has set its own handlers."""


@pytest.mark.parametrize(
    ("program", "command"),
    [
        (ASGI, ("-m", "uvicorn", "--port=0", "program:application")),
        (BARE_ASGI, ("-c", "import program, uvicorn; uvicorn.run(program.application, port=0)")),
        (BARE_ASGI, ("-c", LATE)),
        (WSGI, (*GUNICORN, "--worker-class=gevent", "program:application")),
    ],
    ids=["uvicorn with a lifespan", "uvicorn.run", "uvicorn, a late engine", "gunicorn gevent"],
)
def test_a_server_that_gets_sigterm_finishes_what_its_workers_have_in_work(start, judge, scores, program, command):
    if any("gevent" in part for part in command):
        pytest.importorskip("gevent", reason="runs in `make test-environments`")
    server = start(program, *command)
    address = server.server_address()
    for number in range(5):
        get(address, f"answer-{number}")
    judge.wait_until_asked(5)
    server.send(signal.SIGTERM)
    judge.release()
    server.wait()

    assert scores() == {f"answer-{number}": 1.0 for number in range(5)}


# Celery: what its tasks answered is scored, however the worker runs them and whenever its children end

TASKS = """
import celery

app = celery.Celery(
    "program",
    broker="filesystem://",
    broker_transport_options={"data_folder_in": "broker", "data_folder_out": "broker", "control_folder": "control"},
)

@app.task(name="give")
def give(name):
    answer(name)

@celery.signals.worker_ready.connect
def send(**_):
    for number in range(3):
        give.delay(f"answer {number}")
"""
WORKER = ("-m", "celery", "-A", "program", "worker", "--without-gossip", "--without-mingle", "--without-heartbeat")


@pytest.fixture
def worker(start, tmp_path):
    pytest.importorskip("celery", reason="runs in `make test-environments`")
    (tmp_path / "broker").mkdir()
    (tmp_path / "control").mkdir()
    return lambda *options, **environment: start(TASKS, *WORKER, *options, **environment)


@pytest.mark.parametrize("pool", ["threads", "solo"])
def test_a_celery_worker_that_is_told_to_end_finishes_what_it_has_in_work(worker, judge, scores, pool):
    process = worker(f"--pool={pool}", "--concurrency=2")
    judge.wait_until_asked(3)
    process.send(signal.SIGTERM)
    process.line_with("Warm shutdown")
    judge.release()

    assert process.wait() == 0
    assert scores() == {f"answer {number}": 1.0 for number in range(3)}


def test_a_celery_child_that_has_done_its_number_of_tasks_finishes_what_they_left(worker, judge, scores):
    """It ends by `os._exit`, which runs none of Python's exit code."""
    process = worker("--pool=prefork", "--concurrency=1", "--max-tasks-per-child=1")
    judge.wait_until_asked(1)
    judge.release()
    judge.wait_until_asked(2)
    process.send(signal.SIGTERM)

    assert process.wait() == 0
    assert scores() == {f"answer {number}": 1.0 for number in range(3)}
