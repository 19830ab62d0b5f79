"""Real helper processes, which do what the questions of records say."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import textwrap
from pathlib import Path

import pytest
from programs import Program
from waiting import PATIENCE

FOLDER = Path(__file__).parent / "elsewhere"

PRELUDE = f"""
import os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background inherit that it is ignored
sys.path.append({str(FOLDER)!r})
from obedient import ObedientJudge, Obeying
from ragspan import RagRecord, ScoringEngine
from ragspan.telemetry.emitter_protocols import ScoreEmitter

class Printing(ScoreEmitter):
    score_wait = 20.0
    def emit(self, scored):
        outcome = scored.outcomes["obeying"]
        print(scored.record.name, getattr(outcome, "explanation", outcome), flush=True)

def ask(engine, question, name="answer"):
    engine.submit(RagRecord(question=question, contexts=["c"], response="r", name=name))

def make_engine(**options):
    return ScoringEngine(metrics=[Obeying()], emitters=[Printing()], **options)
"""
"""What every program begins with."""


class Blockade:
    """Judges that are asked to `block` here are at work until they are let go."""

    def __init__(self, folder):
        self.folder = folder
        self.question = f"block {folder}"
        self._pipes = [self._pipe(folder / "started"), self._pipe(folder / "go")]

    def wait_until_started(self):
        """The id of the process that is at work."""
        started, _ = self._pipes
        assert select.select([started], [], [], PATIENCE)[0], "nobody has begun"
        return int(os.read(started, 100).split()[-1])

    def let_go(self):
        """Let all of them go on, now or when they come."""
        _, go = self._pipes
        os.write(go, b"." * 100)

    def close(self):
        self.let_go()
        for pipe in self._pipes:
            os.close(pipe)

    @staticmethod
    def _pipe(path):
        os.mkfifo(path)
        return os.open(path, os.O_RDWR)


class Watched:
    """A process whose end can be waited for, whoever its parent is."""

    def __init__(self, pid):
        try:
            self._descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            self._descriptor = None  # it has ended already

    def ends(self):
        return self._descriptor is None or bool(select.select([self._descriptor], [], [], PATIENCE)[0])

    def lives(self):
        return self._descriptor is not None and not select.select([self._descriptor], [], [], 0)[0]

    def close(self):
        if self.lives():
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
        if self._descriptor is not None:
            os.close(self._descriptor)


@pytest.fixture
def obedient(monkeypatch):
    """The module with what helper processes can import."""
    monkeypatch.syspath_prepend(FOLDER)
    import obedient

    return obedient


@pytest.fixture
def blockade(tmp_path):
    made = Blockade(tmp_path)
    yield made
    made.close()


@pytest.fixture
def explanations(fakes):
    """Has records scored and returns how a metric explains each score, or fails, by question."""

    def explain(engine, emitter, *questions, metric="obeying"):
        for question in questions:
            engine.submit(fakes.a_record(question=question))
        assert engine.flush(fakes.PATIENCE)
        outcomes = {scored.record.question: scored.outcomes[metric] for scored in emitter.scored}
        return {
            question: getattr(outcome, "explanation", None) or outcome.error_type
            for question, outcome in outcomes.items()
        }

    return explain


@pytest.fixture
def helper_of():
    """The id of an engine's helper process."""
    return lambda engine: getattr(engine._work.helper.process, "pid", None)


@pytest.fixture
def stopped():
    """Stops processes, and lets them go on at the end."""
    pids = []

    def stop(pid):
        os.kill(pid, signal.SIGSTOP)
        pids.append(pid)

    yield stop
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@pytest.fixture
def start(tmp_path):
    """Starts a program after `PRELUDE`."""
    started = []

    def start_program(program, *options, folder=None, **environment):
        path = tmp_path / "program.py"
        path.write_text(PRELUDE + textwrap.dedent(program))
        started.append(Program(*options, str(path), folder=folder or tmp_path, environment=environment))
        return started[-1]

    yield start_program
    for application in started:
        application.close()


@pytest.fixture
def watch():
    """Watches processes by their ids, and ends those that still live at the end."""
    watched = []

    def watch_process(pid):
        watched.append(Watched(int(pid)))
        return watched[-1]

    yield watch_process
    for process in watched:
        process.close()
