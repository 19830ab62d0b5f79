"""Real processes that end with work in the queue."""

from __future__ import annotations

import textwrap

import pytest

pytestmark = pytest.mark.slow

PRELUDE = """
import asyncio, logging, os, sys, threading, time
from ragspan.engine import ScoringEngine
from ragspan.outcomes import Score
from ragspan.records import RagRecord
from ragspan.telemetry.emitter_protocols import ScoreEmitter

logging.getLogger("ragspan").addHandler(logging.NullHandler())  # what others log, or Python warns of, fails the test

def record(question="q"):
    return RagRecord(question=str(question), contexts=["c"], response="r")

class Quick:
    name = "quick"
    async def score(self, record):
        return Score(value=1.0)

class Printing(ScoreEmitter):
    score_wait = 10.0
    def emit(self, scored): print("emitted", scored.record.question, *scored.outcomes, flush=True)
    def flush(self, timeout): print("flush", flush=True); return True
    def shutdown(self, timeout): print("shutdown", flush=True)
"""


@pytest.fixture
def run(run_script):
    """Runs a program that begins with the classes above."""
    return lambda program: run_script(PRELUDE + textwrap.dedent(program)).stdout.splitlines()


@pytest.mark.parametrize("registered", ["before", "after"])
def test_an_answer_after_the_end_has_begun_is_named_in_the_log(run, registered):
    registering = "atexit.register(lambda: [engine.submit(record(number)) for number in range(3)])"
    lines = run(f"""
        import atexit
        logging.getLogger("ragspan").addHandler(logging.StreamHandler(sys.stdout))
        engine = ScoringEngine(metrics=[Quick()], emitters=[Printing()])
        {registering if registered == "before" else ""}
        engine.submit(record())
        {registering if registered == "after" else ""}
    """)

    told = "answers that are not scored, because the process ended: 3 (exit_timeout (RAGSPAN_EXIT_TIMEOUT) is 10 s; a larger one waits longer)"
    assert (lines.count(told), lines.count("emitted q quick")) == ((1, 1) if registered == "before" else (0, 1))


def test_a_child_ends_by_sigterm_as_it_would_without_ragspan_until_it_has_work(run):
    lines = run("""
        import signal, warnings
        warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")

        engine = ScoringEngine(metrics=[Quick()])
        engine.submit(record())
        print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, flush=True)
        if not os.fork():
            print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
            engine.submit(record())
            print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
            sys.exit()
        os.wait()
    """)

    assert lines == ["False", "True", "False"]
