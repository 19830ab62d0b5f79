"""Servers with workers of their own, real requests, and SIGTERM while a judge is being asked."""

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
        *("-m", "gunicorn", "--preload", "--workers=2", "--bind=127.0.0.1:0", "--no-control-socket"),
        "program:application",
    )
    address = server.line_with(r"http://127\.0\.0\.1:\d+")[0]
    workers = {get(address, f"answer-{number}") for number in range(10)}
    judge.wait_until_asked(11)
    server.send(signal.SIGTERM)
    judge.release()

    assert server.wait() == 0
    assert scores() == dict.fromkeys(["preloaded", *(f"answer-{number}" for number in range(10))], 1.0)
    assert judge.times_asked == 11
    assert server.pid not in workers


@pytest.mark.skipif(not hasattr(os, "fork"), reason="gunicorn needs a system that forks")
@pytest.mark.parametrize("worker", ["sync", "gthread", "gevent", "asgi", "uvicorn_worker.UvicornWorker"])
def test_gunicorn_finishes_what_its_workers_have_in_work_whatever_they_are(start, judge, scores, worker, tmp_path):
    if worker in {"gevent", "uvicorn_worker.UvicornWorker"}:
        pytest.importorskip(worker.partition(".")[0], reason="runs in `make test-environments`")
    # The client of the OpenAI judge asks for it, by a process that gevent and OpenTelemetry together would fork without end.
    (tmp_path / "gunicorn.conf.py").write_text("import platform; platform.platform()", encoding="utf-8")
    server = start(
        WSGI if worker in {"sync", "gthread", "gevent"} else BARE_ASGI,
        *("-m", "gunicorn", "--workers=2", f"--worker-class={worker}", "--bind=127.0.0.1:0", "--no-control-socket"),
        "program:application",
    )
    address = server.line_with(r"http://127\.0\.0\.1:\d+")[0]
    for number in range(5):
        get(address, f"answer-{number}")
    judge.wait_until_asked(5)
    server.send(signal.SIGTERM)
    judge.release()

    assert server.wait() == 0
    assert scores() == {f"answer-{number}": 1.0 for number in range(5)}


def test_uvicorn_finishes_in_its_lifespan_what_is_in_work(start, judge, scores):
    server = start(ASGI, *("-m", "uvicorn", "--port=0"), "program:application")
    address = server.line_with(r"http://127\.0\.0\.1:\d+")[0]
    for number in range(5):
        get(address, f"answer-{number}")
    judge.wait_until_asked(5)
    server.send(signal.SIGTERM)
    server.line_with("Shutting down")
    judge.release()

    assert server.wait() == -signal.SIGTERM
    assert scores() == {f"answer-{number}": 1.0 for number in range(5)}


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
    "command",
    [
        ("-m", "uvicorn", "--port=0", "program:application"),
        ("-m", "uvicorn", "--port=0", "--workers=2", "program:application"),
        ("-c", "import program, uvicorn; uvicorn.run(program.application, port=0)"),
        ("-c", LATE),
        ("-m", "hypercorn", "--bind=127.0.0.1:0", "program:application"),
        ("-m", "gunicorn", "--bind=127.0.0.1:0", "--no-control-socket", "program:wsgi"),
    ],
    ids=["uvicorn", "uvicorn workers", "uvicorn.run", "uvicorn, a late engine", "hypercorn", "gunicorn"],
)
def test_a_server_that_gets_sigterm_waits_for_scores_without_a_lifespan(start, judge, scores, command):
    server = start(BARE_ASGI + WSGI.replace("def application", "def wsgi"), *command)
    address = server.line_with(r"http://127\.0\.0\.1:\d+")[0]
    for number in range(5):
        get(address, f"answer-{number}")
    judge.wait_until_asked(5)
    server.send(signal.SIGTERM)
    judge.release()
    server.wait()

    assert scores() == {f"answer-{number}": 1.0 for number in range(5)}


def test_uvicorn_that_reloads_finishes_the_work_of_the_old_process(start, judge, scores, tmp_path):
    server = start(ASGI, *("-m", "uvicorn", "--port=0", "--reload", "--reload-delay=0.05"), "program:application")
    address = server.line_with(r"http://127\.0\.0\.1:\d+")[0]
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
