"""Deploys under load: real servers get SIGTERM while they answer real requests, and every answer that was given is scored once.

`make test-deploys` runs the whole table, or what the other slow tests, which run some of its rows, leave of it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import shutil
import signal
import sys
import threading
import urllib.request
from pathlib import Path

import pytest
from deploy_table import OTHERS, PAGE, ROWS, UVICORN, WAYS, Row, gunicorn, tables, with_tables
from programs import Program
from waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="servers that fork, and SIGTERM"),
]

DEPLOYS = os.environ.get("DEPLOYS", "usual")
APPLICATION = Path(__file__).parent / "deployed"
CLIENTS = 4
PAUSE = (
    0.02  # seconds between two requests of a client: more than scoring can keep up with would be lost by the time limit
)
ANSWER = "invoke_workflow "


class Load:
    """Clients that ask until they are stopped, each time by a name of its own."""

    def __init__(self, address):
        self._address = address
        self._names = itertools.count()
        self._stopped = threading.Event()
        self.answered = {}
        """By name: the process that answered."""
        self.unanswered = set()
        self._clients = [threading.Thread(target=self._ask) for _ in range(CLIENTS)]
        for client in self._clients:
            client.start()

    def stop(self):
        self._stopped.set()
        for client in self._clients:
            client.join()

    def _ask(self):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while not self._stopped.wait(PAUSE):
            name = str(next(self._names))
            try:
                with opener.open(f"{self._address}/{name}", timeout=60) as reply:
                    self.answered[name] = int(reply.read())
            except Exception:
                self.unanswered.add(name)


class Written:
    """What Celery's tasks answered: they write it into files."""

    def __init__(self, folder):
        self._folder = folder
        self.unanswered = set()

    @property
    def answered(self):
        return {file.name: file.read_text() for file in self._folder.iterdir()}

    def stop(self):
        pass


class Deploy:
    """A server under load."""

    def __init__(self, program, load):
        self.program = program
        self.load = load

    def answers(self, number):
        until(
            lambda: len(self.load.answered) >= number or self.program.process.poll() is not None,
            what=f"{number} answers",
        )
        assert self.program.process.poll() is None, self.program.output

    def pids(self):
        return set(self.load.answered.values())

    def end(self, number=signal.SIGTERM, *, send=os.kill):
        """Send it the signal, wait for its end, and stop the clients."""
        send(self.program.pid, number)
        self.program.wait()
        self.load.stop()


@pytest.fixture
def deploy(otlp_listener, tmp_path):
    """Starts a server with clients that ask it; `kept()` afterwards says that no answer of it is lost."""
    shutil.copytree(APPLICATION, tmp_path, dirs_exist_ok=True)
    for name in ("answered", "broker", "control"):
        (tmp_path / name).mkdir()
    environment = {
        "PYTHONUNBUFFERED": "1",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_ENDPOINT": otlp_listener.url,
        "RAGSPAN_EXIT_TIMEOUT": "50",
    }
    with contextlib.ExitStack() as ending:

        def start(command, way="run"):
            before = WAYS[way][1]
            if way == "instrument":
                before = (str(Path(sys.executable).parent / "opentelemetry-instrument"), sys.executable)
            variables = environment | ({"CONFIGURES": "yes"} if way == "configure" else {})
            program = Program(*before, *command, folder=tmp_path, environment=variables)
            ending.callback(program.close)
            if "celery" in command:
                load = Written(tmp_path / "answered")
            elif "uwsgi" in command[-1]:
                load = Load(f"http://{program.line_with('(127.0.0.1:[0-9]+)')[1]}")
            else:
                load = Load(program.server_address())
            ending.callback(load.stop)
            return Deploy(program, load)

        yield start


@pytest.fixture
def assert_kept(otlp_listener):
    def check(deployed):
        scored = [
            span.name.removeprefix(ANSWER)
            for span in otlp_listener.spans
            if span.name.startswith(ANSWER) and "ragspan.score.context_adherence" in span.attributes
        ]
        answered = set(deployed.load.answered)
        assert sorted(answered - set(scored)) == [], deployed.program.output
        assert len(scored) == len(set(scored))
        # What was answered while the connection was cut has its score, too.
        assert set(scored) - answered <= deployed.load.unanswered

    return check


def case(*values, usual, needs=(), name):
    """A row, skipped where another run has it: `whole` has all, `rest` those that are not usual."""
    rests = ("rest" if usual else "usual") == DEPLOYS or any(importlib.util.find_spec(each) is None for each in needs)
    marks = [pytest.mark.skip(reason="runs in `make test-deploys`")] if rests else []
    return pytest.param(*values, marks=marks, id=name)


def cases():
    for row in ROWS:
        for way in WAYS:
            yield case(row, way, usual=way in row.usual, needs=row.needs, name=f"{row.name}, {way}")


@pytest.mark.parametrize(("row", "way"), list(cases()))
def test_every_answer_that_was_given_until_sigterm_is_scored_once(deploy, assert_kept, row: Row, way):
    deployed = deploy(row.command, way)
    deployed.answers(40)
    deployed.end()

    assert_kept(deployed)


# The neighbours: other ends of processes that answer


def term_the_group(pid, number):
    """As systemd does: to each process, and once more from the first one."""
    os.killpg(pid, number)


def term_twice(pid, number):
    os.kill(pid, number)
    os.kill(pid, number)


PRELOADED = gunicorn("asgi", "--preload")
UVICORN_WORKERS = (*UVICORN, "--workers=2")
ENDS = {
    "SIGINT, uvicorn": (UVICORN, signal.SIGINT, os.kill),
    "twice, uvicorn": (UVICORN, signal.SIGTERM, term_twice),
    "twice, gunicorn asgi": (PRELOADED, signal.SIGTERM, term_twice),
    "to the group, uvicorn workers": (UVICORN_WORKERS, signal.SIGTERM, term_the_group),
    "to the group, gunicorn asgi": (PRELOADED, signal.SIGTERM, term_the_group),
}
USUAL_ENDS = {"SIGINT, uvicorn", "to the group, uvicorn workers", "to the group, gunicorn asgi"}


@pytest.mark.parametrize(
    ("command", "number", "send"),
    [case(*end, usual=name in USUAL_ENDS, name=name) for name, end in ENDS.items()],
)
def test_other_signals_and_more_of_them_lose_no_answer(deploy, assert_kept, command, number, send):
    deployed = deploy(command)
    deployed.answers(40)
    deployed.end(number, send=send)

    assert_kept(deployed)


RECYCLED = {
    "uvicorn workers": (*UVICORN_WORKERS, "--limit-max-requests=15"),
    "gunicorn sync": gunicorn("sync", "--max-requests=10"),
    "gunicorn asgi": gunicorn("asgi", "--max-requests=10"),
}


@pytest.mark.parametrize(
    "command",
    [case(command, usual=name == "uvicorn workers", name=name) for name, command in RECYCLED.items()],
)
def test_workers_that_end_after_a_number_of_requests_lose_no_answer(deploy, assert_kept, command):
    deployed = deploy(command)
    until(
        lambda: len(deployed.pids()) > 2, what="a third process that answers", patience=240
    )  # uvicorn's takes a minute
    deployed.end()

    assert_kept(deployed)


@pytest.mark.skipif(DEPLOYS == "rest", reason="runs with the slow tests")
def test_a_server_that_reloads_on_a_change_loses_no_answer(deploy, assert_kept, tmp_path):
    deployed = deploy((*UVICORN, "--reload", "--reload-delay=0.05"))
    deployed.answers(20)
    os.utime(tmp_path / "answers.py", ns=(2**62, 2**62))
    until(lambda: len(deployed.pids()) > 1, what="the next process")
    deployed.end()

    assert_kept(deployed)


@pytest.mark.skipif(DEPLOYS == "rest", reason="runs with the slow tests")
def test_workers_that_gunicorn_replaces_at_sighup_lose_no_answer(deploy, assert_kept):
    deployed = deploy(gunicorn("gthread"))
    deployed.answers(20)
    deployed.program.send(signal.SIGHUP)
    until(lambda: len(deployed.pids()) > 2, what="a third process that answers")
    deployed.end()

    assert_kept(deployed)


UWSGI = Path(sys.executable).parent / "uwsgi"


@pytest.mark.skipif(not UWSGI.exists(), reason="runs in `make test-environments`")
def test_workers_of_uwsgi_that_are_ended_gracefully_lose_no_answer(deploy, assert_kept):
    options = (
        *("--http-socket=127.0.0.1:0", "--module=answers:wsgi", f"--virtualenv={sys.prefix}", "--need-app"),
        *("--master", "--processes=2", "--threads=4", "--enable-threads", "--single-interpreter"),
        *("--hook-master-start=unix_signal:15 gracefully_kill_them_all", "--worker-reload-mercy=60"),
    )
    deployed = deploy(("-c", f"import os; os.execv({str(UWSGI)!r}, {[str(UWSGI), *options]!r})"), "configure")
    deployed.answers(40)
    deployed.end()

    assert not [line for line in deployed.program.output if "there is no helper process" in line]
    assert_kept(deployed)


# The page says nothing else


def test_the_pages_tables_are_these():
    page = PAGE.read_text(encoding="utf-8")

    assert page == with_tables(page), "write it anew: python tests/shared/deploy_table.py"
    assert all(table in page for table in tables().values())


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: other.name)
def test_what_else_the_page_says_is_shown_by_a_test(other):
    file, _, function = other.test.partition("::")

    assert f"\ndef {function}(" in (Path(__file__).parent / file).read_text(encoding="utf-8")
