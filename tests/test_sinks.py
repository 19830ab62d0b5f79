"""Where handlers send captures when they are given no sink."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest

import ragspan
from ragspan import ConfigurationError, Settings, defaults, installed
from ragspan.testing import RecordingSink


class FarSink(RecordingSink):
    """Records where it was told to send."""

    def __init__(self, settings):
        super().__init__()
        self.address = settings.sink


@pytest.fixture
def registered(monkeypatch):
    """A sink for addresses that begin with `far`, and one whose package lacks something; nothing is left of them after."""
    entries = [
        EntryPoint("far", f"{__name__}:FarSink", "ragspan_sink"),
        EntryPoint("lost", "nowhere:Sink", "ragspan_sink"),
    ]
    monkeypatch.setattr(installed, "entry_points", EntryPoints(entries).select)
    monkeypatch.setattr(defaults, "_current", None)


def test_a_sink_is_made_once_for_its_address_and_gets_the_captures(registered, monkeypatch):
    monkeypatch.setenv("RAGSPAN_SINK", "far://away")

    with ragspan.capture(question="q") as answer:
        answer.response = "r"

    sink = defaults.default_sink()
    assert sink.address == "far://away"
    assert defaults.default_sink() is sink
    (record,) = sink.records()
    assert (record.question, record.response) == ("q", "r")


@pytest.mark.parametrize("variables", [{"SINK": ""}, {"SINK": "far://away", "ENABLED": "false"}])
def test_without_an_address_and_when_turned_off_it_is_the_engine(registered, monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(f"RAGSPAN_{name}", value)

    sink = defaults.default_sink()

    assert sink is ragspan.default_engine()
    sink.shutdown()


def test_an_engine_that_was_set_comes_first(registered, monkeypatch):
    monkeypatch.setenv("RAGSPAN_SINK", "far://away")
    with ragspan.ScoringEngine(metrics=[]) as engine:
        ragspan.set_default_engine(engine)

        assert defaults.default_sink() is engine


@pytest.mark.parametrize("address", ["near://user:secret@x", "lost://user:secret@x"])
def test_an_address_that_nothing_can_send_to_is_an_error_without_its_secrets(registered, address):
    with pytest.raises(ConfigurationError) as told:
        defaults.sink_from(Settings(sink=address))

    assert "secret" not in str(told.value)


def test_what_is_no_address_is_an_error_that_does_not_show_it(monkeypatch):
    monkeypatch.setenv("RAGSPAN_SINK", "user:secret@broker")

    with pytest.raises(ConfigurationError, match="RAGSPAN_SINK should be an address") as told:
        Settings.from_environment()

    assert "secret" not in str(told.value)
