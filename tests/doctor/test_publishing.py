"""What the doctor says of an application whose records are scored elsewhere."""

from __future__ import annotations

import logging
from importlib.metadata import EntryPoint, EntryPoints
from types import SimpleNamespace

import pytest

from ragspan import installed
from ragspan.doctor import exit_code
from ragspan.testing import RecordingSink

SINKS = []
KINDS = ("takes", "refuses", "forbids", "slow", "idle", "busy")


class Plain(RecordingSink):
    """Does what the scheme of its address says, and knows nothing of workers."""

    def __init__(self, settings):
        super().__init__()
        self.kind = settings.sink.partition(":")[0]
        self.waited = []
        SINKS.append(self)

    def flush(self, timeout):
        self.waited.append(timeout)
        for words in {
            "forbids": ["Permissions Violation for publish", "no reply"],
            "slow": ["not connected", "not connected yet"],
        }.get(self.kind, ()):
            logging.getLogger("ragspan.sink").warning(words)
        return self.kind not in {"slow", "forbids"}

    def stats(self):
        return SimpleNamespace(dropped={"too_large": 1} if self.kind == "refuses" else {})

    def shutdown(self, timeout):
        self.waited.append(timeout)


class Sink(Plain):
    def look_for_workers(self, timeout):
        self.waited.append(timeout)
        seen = {
            "idle": (False, "no worker takes records: 3 wait in the stream"),
            "busy": (None, "no worker asks for records now"),
        }
        return seen.get(self.kind, (True, "a worker takes records: 0 wait"))


@pytest.fixture
def published(monkeypatch, examined):
    """What the doctor finds with a sink of this kind."""
    entries = [EntryPoint(name, f"{__name__}:Sink", "ragspan_sink") for name in KINDS]
    entries.append(EntryPoint("plain", f"{__name__}:Plain", "ragspan_sink"))
    monkeypatch.setattr(installed, "entry_points", EntryPoints(entries).select)
    SINKS.clear()
    return lambda kind: examined(RAGSPAN_SINK=f"{kind}://user:s3cret@broker")


def test_a_record_that_the_broker_takes_is_all_that_an_application_needs(published):
    findings = published("takes")

    (sink,) = SINKS
    (record,) = sink.records()
    accepted, taken = findings.of("sink")
    assert (accepted.state, accepted.found.split()[-1]) == ("ok", record.record_id)
    assert (taken.state, taken.found, taken.advice) == ("ok", "a worker takes records: 0 wait", None)
    assert sink.waited == pytest.approx([60 * 0.8 * share for share in (0.35, 0.2, 0.45)])
    assert exit_code(findings) == 0


@pytest.mark.parametrize(
    ("kind", "state", "code", "exits_with"),
    [
        ("plain", "ok", "sink_accepts", 0),
        ("refuses", "failed", "sink_refuses", 1),
        ("forbids", "failed", "sink_refuses", 1),
        ("slow", "failed", "sink_refuses", 1),
        ("idle", "failed", "no_worker", 1),
        ("busy", "warning", "worker_unknown", 0),
    ],
)
def test_it_is_no_success_where_nobody_scores_what_the_sink_takes(published, kind, state, code, exits_with):
    findings = published(kind)

    last = findings.of("sink")[-1]
    assert (last.state, last.code, exit_code(findings)) == (state, code, exits_with)
    assert "s3cret" not in repr(findings)
