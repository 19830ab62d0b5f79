"""Fixtures that the tests of all native writers share: a `conftest` imports them and says by `backend` what its own are."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from servers.scores import ScoreServer
from waiting import PATIENCE

from ragspan.outcomes import Score, ScoredRecord
from ragspan.records import RagRecord, SpanAnchor
from ragspan.tools import ScoreWriter

ANSWER = SpanAnchor(trace_id=0xA1, span_id=0xB2)
ENDED_NS = 1_763_900_000_123_456_789
_PREFIXES = ("DD_", "LANGCHAIN_", "LANGFUSE_", "LANGSMITH_", "MLFLOW_", "OTEL_", "PHOENIX_", "RAGSPAN_")
"""Of variables of tools; those that a `Backend` names go as well."""


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A writer with a server that answers as its backend does."""

    server: Callable[[], ScoreServer]
    """It has `scores`, their values by metric, and `number_of_scores`."""
    writer: type[ScoreWriter]
    address: str
    """The argument for the server's address."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Of the writer, besides."""
    variables: Callable[[str], dict[str, str]]
    """The variables that say the same, for the server's address."""
    needed: str | None = None
    """The variable without which there is no writer."""
    secret: str
    """The key that the writer was given."""


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch, backend):
    """No proxy stands in the way, and nothing that the machine has set is found."""
    monkeypatch.setenv("NO_PROXY", "*")
    for name in [name for name in os.environ if name.startswith(_PREFIXES)] + [*backend.variables("")]:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server(backend):
    made = backend.server()
    yield made
    made.close()


@pytest.fixture
def make_writer(backend, server):
    writers = []

    def make(**options):
        writers.append(backend.writer(**{backend.address: server.url, **backend.arguments, **options}))
        return writers[-1]

    yield make
    for writer in writers:
        writer.shutdown(0.1)


@pytest.fixture
def deliver(make_writer):
    """Writes outcomes by a new writer, and returns it."""

    def deliver(scored, **options):
        writer = make_writer(**options)
        writer.emit(scored)
        assert writer.flush(PATIENCE)
        return writer

    return deliver


@pytest.fixture
def make_scored():
    """The outcomes of an answer."""

    def make(outcomes=None, *, span=ANSWER, record_id="record-1", run_id=None):
        record = RagRecord(
            question="q",
            contexts=["c"],
            response="r",
            record_id=record_id,
            run_id=run_id,
            started_ns=1,
            ended_ns=ENDED_NS,
        )
        outcomes = {"faithfulness": Score(value=0.5, threshold=0.8)} if outcomes is None else outcomes
        return ScoredRecord(record=record, outcomes=outcomes, span=span)

    return make
