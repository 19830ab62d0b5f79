"""What the doctor says of an application whose records are scored elsewhere."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

from ragspan import sinks
from ragspan.doctor import examine, exit_code
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
    monkeypatch.setattr(sinks, "entry_points", lambda group: entries)
    SINKS.clear()


def diagnoses_with(set_variables, address):
    set_variables(RAGSPAN_SINK=address)
    return {diagnosis.check: diagnosis.findings for diagnosis in examine(timeout=30.0)}


def test_a_record_that_the_broker_takes_is_all_that_an_application_needs(set_variables):
    findings = diagnoses_with(set_variables, "takes://broker")

    (sink,) = SINKS
    (record,) = sink.records()
    (finding,) = findings["sink"]
    assert (finding.state, finding.facts["record_id"]) == ("ok", record.record_id)
    assert sink.is_shut_down
    assert exit_code([finding for each in findings.values() for finding in each]) == 0


def test_what_workers_do_is_not_looked_for_in_the_application(set_variables):
    findings = diagnoses_with(set_variables, "takes://broker")

    assert [check for check, each in findings.items() if each[0].state == "skipped"] == [
        "telemetry", "judge", "endpoint", "record",
    ]  # fmt: skip


@pytest.mark.parametrize(("scheme", "reason"), [("refuses", "too_large"), ("slow", "not taken in the time")])
def test_a_record_that_the_broker_does_not_take_has_failed(set_variables, scheme, reason):
    (finding,) = diagnoses_with(set_variables, f"{scheme}://broker")["sink"]

    assert finding.state == "failed"
    assert reason in finding.found


def test_a_sink_that_says_nothing_is_a_warning(set_variables):
    (finding,) = diagnoses_with(set_variables, "silent://broker")["sink"]

    assert finding.state == "warning"


def test_an_address_that_nobody_takes_is_misuse(set_variables):
    (finding,) = diagnoses_with(set_variables, "kafka://user:s3cret@broker")["sink"]

    assert (finding.state, finding.is_misuse) == ("failed", True)
    assert "s3cret" not in repr(finding)
