"""Answers are published where `RAGSPAN_SINK` alone says so."""

from __future__ import annotations

import pytest
from submitted import stored_records
from waiting import PATIENCE

import ragspan
from ragspan import defaults
from ragspan.process import in_use
from ragspan_nats import NatsSink

PASSAGES = ["The office is in Bern.", "It opens at nine."]
ANSWER = "In Bern."


@pytest.fixture
def published_by_default(broker, monkeypatch):
    """`RAGSPAN_SINK` names the broker; the sink that comes of it is shut down."""
    monkeypatch.setattr(in_use, "sink", None)
    monkeypatch.setenv("RAGSPAN_SINK", broker.url)
    yield broker
    if in_use.sink is not None:
        in_use.sink.shutdown(1)


def test_a_variable_is_enough(published_by_default, monkeypatch):
    monkeypatch.setenv("RAGSPAN_NATS_STREAM", "answers")
    monkeypatch.setenv("RAGSPAN_EXIT_TIMEOUT", "3")
    with ragspan.capture(question="By hand?") as answer:
        answer.contexts, answer.response = PASSAGES, ANSWER

    sink = defaults.default_sink()
    assert (type(sink), sink.exit_timeout) == (NatsSink, 3.0)
    assert sink.flush(PATIENCE)
    assert [record.question for record in stored_records(published_by_default, "answers")] == ["By hand?"]
