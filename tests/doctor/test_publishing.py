"""What the doctor says of an application whose records are scored elsewhere."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from types import SimpleNamespace

import pytest

from ragspan import installed
from ragspan.doctor import exit_code
from ragspan.testing import RecordingSink

SINKS = []


class TakingSink(RecordingSink):
    """Takes every record, and says so."""

    dropped: dict = {}

    def __init__(self, settings):
        super().__init__()
        self.is_shut_down = False
        SINKS.append(self)

    def flush(self, timeout):
        return True

    def stats(self):
        return SimpleNamespace(dropped=self.dropped)

    def shutdown(self, timeout):
        self.is_shut_down = True


class RefusingSink(TakingSink):
    """Drops every record."""

    dropped = {"too_large": 1}


class SlowSink(TakingSink):
    """Is never done."""

    def flush(self, timeout):
        return False


class SilentSink:
    """Has nothing but what a sink needs."""

    def __init__(self, settings):
        pass

    def submit(self, capture):
        pass


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    entries = [
        EntryPoint(name, f"{__name__}:{kind.__name__}", "ragspan_sink")
        for name, kind in (("takes", TakingSink), ("refuses", RefusingSink), ("slow", SlowSink), ("silent", SilentSink))
    ]
    monkeypatch.setattr(installed, "entry_points", EntryPoints(entries).select)
    SINKS.clear()


def test_a_record_that_the_broker_takes_is_all_that_an_application_needs(examined):
    findings = examined(RAGSPAN_SINK="takes://broker")

    (sink,) = SINKS
    (record,) = sink.records()
    (finding,) = findings.of("sink")
    assert (finding.state, finding.facts["record_id"]) == ("ok", record.record_id)
    assert sink.is_shut_down
    assert exit_code(findings) == 0


def test_what_workers_do_is_not_looked_for_in_the_application(examined):
    findings = examined(RAGSPAN_SINK="takes://broker")

    assert [finding.check for finding in findings if finding.state == "skipped"] == ["judge", "endpoint", "record"]


@pytest.mark.parametrize(("scheme", "reason"), [("refuses", "too_large"), ("slow", "no reply in time")])
def test_a_record_that_the_broker_does_not_take_has_failed(examined, scheme, reason):
    (finding,) = examined(RAGSPAN_SINK=f"{scheme}://broker").of("sink")

    assert finding.state == "failed"
    assert reason in finding.found


def test_a_sink_that_says_nothing_is_a_warning(examined):
    (finding,) = examined(RAGSPAN_SINK="silent://broker").of("sink")

    assert finding.state == "warning"


def test_an_address_that_nobody_takes_is_misuse(examined):
    (finding,) = examined(RAGSPAN_SINK="kafka://user:s3cret@broker").of("sink")

    assert (finding.state, finding.is_misuse) == ("failed", True)
    assert "s3cret" not in repr(finding)
