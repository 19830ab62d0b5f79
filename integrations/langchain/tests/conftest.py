from __future__ import annotations

import gc
from pathlib import Path

import pytest
from captures import Captures
from lc_captures import ChainCaptures
from openinference.instrumentation.langchain import LangChainInstrumentor
from traced_application import application, new_application  # noqa: F401 - fixtures
from whole_records import WholeRecords

WHOLE = WholeRecords(Path(__file__).with_name("whole_records.json"), "langchain-core")
NOT_WHOLE = {"test_traced_already", "test_calling", "test_logs", "test_public_programs"}
"""Tests with ids by chance, with threads that take turns, with hundreds alike, and those that compare whole records themselves."""


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch):
    """Neither LangSmith nor ragspan is told anything by the environment of the test run."""
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    for name in ("LANGCHAIN_TRACING_V2", "RAGSPAN_ENABLED", "RAGSPAN_JUDGE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def new_captures(caplog):
    """Makes handlers; when the test is over, none of them may follow a run or have had an error in a callback."""
    made = []

    def make(sink=None):
        made.append(ChainCaptures(sink))
        return made[-1]

    yield make
    if any(captures.handler.open_runs for captures in made):
        gc.collect()  # streams that the test dropped in a cycle
    assert [captures.handler.open_runs for captures in made] == [0] * len(made)
    assert [error for captures in made for error in captures.sink.errors] == []
    assert [line.getMessage() for line in caplog.records if line.name.startswith("langchain_core.callbacks")] == []


@pytest.fixture
def captured(new_captures):
    """A handler to call programs with, and the records of what it captured."""
    return new_captures()


@pytest.fixture
def openinference(application):  # noqa: F811 - the fixture
    """OpenInference traces every call of LangChain, to where the application's own spans go."""
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=application.provider)
    yield instrumentor
    if instrumentor.is_instrumented_by_opentelemetry:
        instrumentor.uninstrument()


@pytest.fixture(autouse=True)
def whole_records(request):
    """Compares what records hold besides what a test looks at."""
    if request.path.stem in NOT_WHOLE:
        yield
        return
    with WHOLE.compared(request, Captures.seen, without=()):
        yield
