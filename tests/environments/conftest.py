"""Programs in processes of their own, with a real judge to ask and a real exporter to send to."""

from __future__ import annotations

import queue
import textwrap
import threading
from pathlib import Path

import pytest
from programs import Program
from waiting import PATIENCE

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
judge = OverlapJudge() if os.environ.get("JUDGE") == "overlap" else OpenAIJudge("test-model", max_retries=0, timeout=120)
engine = ScoringEngine(
    metrics=[ContextAdherence(judge, polls=1)],
    emitters=[OTelEmitter(score_wait=60)],  # the judge is held for as long as a busy machine takes to start processes
    exit_timeout=float(os.environ.get("EXIT_TIMEOUT", 30)),
    metric_timeout=120,
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

    def __init__(self, endpoint):
        self._endpoint = endpoint
        self._asked = queue.SimpleQueue()
        self._released = threading.Event()
        endpoint.answer = self._answer

    def wait_until_asked(self, times):
        for _ in range(times):
            self._asked.get(timeout=PATIENCE)

    def release(self):
        self._released.set()

    @property
    def times_asked(self):
        return len(self._endpoint.requests)

    def _answer(self, _request):
        self._asked.put(None)
        self._released.wait()
        return self._endpoint.says(GROUNDED)


@pytest.fixture
def judge(fake_openai):
    held = HeldJudge(fake_openai)
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
        process = Program(*(arguments or ["program.py"]), folder=tmp_path, environment=environment)
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
