"""Programs in processes of their own, with a real judge to ask and a real exporter to send to."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

PATIENCE = 60.0  # seconds

APPLICATION = """
import atexit, os, signal, sys, threading, time, warnings
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background inherit that it is ignored

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from ragspan import RagRecord, ScoringEngine
from ragspan.judges import OpenAIJudge, OverlapJudge
from ragspan.metrics import ContextAdherence
from ragspan.telemetry import OTelEmitter

warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")  # with threads is what is tested
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
judge = OverlapJudge() if os.environ.get("JUDGE") == "overlap" else OpenAIJudge("test-model", max_retries=0)
engine = ScoringEngine(
    metrics=[ContextAdherence(judge, polls=1)],
    emitters=[OTelEmitter(score_wait=60)],  # the judge is held for as long as a busy machine takes to start processes
    exit_timeout=float(os.environ.get("EXIT_TIMEOUT", 30)),
    drain_on_sigterm=os.environ.get("DRAIN_ON_SIGTERM") != "no",
)

def wait_for_test():
    sys.stdin.readline()

def answer(name):
    text = "The road is wet because it rains."
    engine.submit(RagRecord(question="Why is the road wet?", contexts=[text], response=text, name=name))
"""
"""What every program begins with: an engine as an application makes it, at import."""

GROUNDED = '{"answer": {"grounding": {"reasoning": "stated", "verdict": "grounded"}}}'


class HeldJudge:
    """An endpoint that answers nobody until it is released, so that a test can act in mid-work."""

    def __init__(self, endpoint, patience):
        self._endpoint = endpoint
        self._patience = patience
        self._asked = queue.SimpleQueue()
        self._released = threading.Event()
        endpoint.answer = self._answer

    def wait_until_asked(self, times):
        for _ in range(times):
            self._asked.get(timeout=self._patience)

    def release(self):
        self._released.set()

    @property
    def times_asked(self):
        return len(self._endpoint.requests)

    def _answer(self, _request):
        self._asked.put(None)
        self._released.wait()
        return self._endpoint.says(GROUNDED)


class Program:
    """A process of its own, whose lines can be waited for."""

    def __init__(self, arguments, *, folder, environment, patience):
        self._patience = patience
        self.output = []
        self._lines = queue.SimpleQueue()
        self._process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env=os.environ | environment,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self):
        return self._process.pid

    def line_with(self, pattern):
        """The match in the next line that has one."""
        while True:
            try:
                match = re.search(pattern, self._lines.get(timeout=self._patience))
            except queue.Empty:
                raise AssertionError(f"no line with {pattern!r} in: {self.output}") from None
            if match:
                return match

    def let_go_on(self):
        """Ends the program's `wait_for_test()`."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def send(self, number):
        self._process.send_signal(number)

    def wait(self):
        """How it ended, as `subprocess` tells it."""
        status = self._process.wait(self._patience)
        self._reader.join(self._patience)
        return status

    def close(self):
        """End it with all its children, unless it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self.wait()
        self._process.stdin.close()
        self._process.stdout.close()

    def _read(self):
        for line in self._process.stdout:
            self.output.append(line.rstrip())
            self._lines.put(line)


@pytest.fixture
def judge(fake_openai):
    held = HeldJudge(fake_openai, PATIENCE)
    yield held
    held.release()


@pytest.fixture
def start(fake_openai, otlp_listener, judge, tmp_path: Path):
    """Starts a program after `APPLICATION`, or another that imports it as `program`."""
    started = []

    def start_program(program, *arguments, **environment):
        text = APPLICATION + textwrap.dedent(program)
        (tmp_path / "program.py").write_text(text, encoding="utf-8")
        environment |= {
            "OPENAI_BASE_URL": fake_openai.base_url,
            "OPENAI_API_KEY": "sk-test",
            "OTEL_EXPORTER_OTLP_ENDPOINT": otlp_listener.url,
            "PYTHONUNBUFFERED": "1",
        }
        process = Program(arguments or ["program.py"], folder=tmp_path, environment=environment, patience=PATIENCE)
        started.append(process)
        return process

    yield start_program
    for process in started:
        process.close()


@pytest.fixture
def scores(otlp_listener):
    """The scores that have arrived, by the names of the answers; an answer that arrived twice fails the test."""

    def received():
        answers = [span for span in otlp_listener.spans if span.name.startswith("invoke_")]
        by_name = {
            span.name.removeprefix("invoke_workflow "): span.attributes.get("ragspan.score.context_adherence")
            for span in answers
        }
        assert len(by_name) == len(answers)
        return by_name

    return received
