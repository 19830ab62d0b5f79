"""Servers and Celery's workers, with processes of their own, real requests, and SIGTERM while a judge is being asked."""

from __future__ import annotations

import os
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="gunicorn needs a system that forks")
def test_gunicorn_with_preload_finishes_what_its_workers_have_in_work(start, judge, scores):
    """The engine is made before the fork; each worker has one of its own, and ends in good order at SIGTERM."""
    server = start(
        WSGI + '\nanswer("preloaded")\n',
        *(*GUNICORN, "--preload", "program:application"),
    )
    address = server.server_address()
    workers = {get(address, f"answer-{number}") for number in range(10)}
    judge.wait_until_asked(11)
    server.send(signal.SIGTERM)
    judge.release()

    assert server.wait() == 0
    assert scores() == dict.fromkeys(["preloaded", *(f"answer-{number}" for number in range(10))], 1.0)
    assert judge.times_asked == 11
    assert server.pid not in workers


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
        (BARE_ASGI, ("-m", "uvicorn", "--port=0", "program:application")),
        (BARE_ASGI, ("-m", "uvicorn", "--port=0", "--workers=2", "program:application")),
        (BARE_ASGI, ("-c", "import program, uvicorn; uvicorn.run(program.application, port=0)")),
        (BARE_ASGI, ("-c", LATE)),
        (BARE_ASGI, ("-m", "hypercorn", "--bind=127.0.0.1:0", "program:application")),
        *(
            (WSGI, (*GUNICORN, f"--worker-class={kind}", "program:application"))
            for kind in ("sync", "gthread", "gevent")
        ),
        (BARE_ASGI, (*GUNICORN, "--worker-class=asgi", "program:application")),
        (BARE_ASGI, (*GUNICORN, "--worker-class=uvicorn_worker.UvicornWorker", "program:application")),
    ],
    ids=[
        *(
            "uvicorn with a lifespan",
            "uvicorn",
            "uvicorn workers",
            "uvicorn.run",
            "uvicorn, a late engine",
            "hypercorn",
        ),
        *("gunicorn sync", "gunicorn gthread", "gunicorn gevent", "gunicorn asgi", "gunicorn uvicorn"),
    ],
)
def test_a_server_that_gets_sigterm_finishes_what_its_workers_have_in_work(
    start, judge, scores, program, command, tmp_path
):
    for module in ("gevent", "uvicorn_worker", "hypercorn"):
        if any(module in part for part in command):
            pytest.importorskip(module, reason="runs in `make test-environments`")
    # The client of the OpenAI judge asks for it, by a process that gevent and OpenTelemetry together would fork without end.
    (tmp_path / "gunicorn.conf.py").write_text("import platform; platform.platform()", encoding="utf-8")
    server = start(program, *command)
    address = server.server_address()
    for number in range(5):
        get(address, f"answer-{number}")
    judge.wait_until_asked(5)
    server.send(signal.SIGTERM)
    judge.release()
    server.wait()

    assert scores() == {f"answer-{number}": 1.0 for number in range(5)}


def test_uvicorn_that_reloads_finishes_the_work_of_the_old_process(start, judge, scores, tmp_path):
    server = start(ASGI, *("-m", "uvicorn", "--port=0", "--reload", "--reload-delay=0.05"), "program:application")
    address = server.server_address()
    server.line_with("Application startup complete")
    old = get(address, "before")
    judge.wait_until_asked(1)
    os.utime(tmp_path / "program.py", ns=(2**62, 2**62))
    server.line_with("Reloading")
    server.line_with("Shutting down")
    judge.release()
    server.line_with("Application startup complete")
    new = get(address, "after")
    server.send(signal.SIGTERM)

    server.wait()
    assert new != old
    assert scores() == {"before": 1.0, "after": 1.0}


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


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
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
