"""What `ragspan doctor` says of an application whose records workers score."""

from __future__ import annotations

import pytest
from waiting import until
from worker_process import in_work

from ragspan.doctor import exit_code
from ragspan.doctor.examination import examine


@pytest.fixture
def sink_check(monkeypatch):
    """What the doctor finds out about a sink, and its exit code."""

    def look(broker, **variables):
        for name, value in {"RAGSPAN_SINK": broker.url, **variables}.items():
            monkeypatch.setenv(name, value)
        findings = list(examine(timeout=20.0))
        return [one for one in findings if one.check == "sink"], exit_code(findings)

    return look


def test_without_a_worker_it_fails_and_says_how_to_start_one(broker, sink_check):
    (accepted, taken), code = sink_check(broker)

    assert (accepted.state, taken.state, code) == ("ok", "failed", 1)
    assert taken.found == "no worker has ever asked for the records of the stream ragspan"
    assert taken.code == "no_worker"


@pytest.mark.slow
def test_with_a_worker_all_is_well_and_no_longer_once_it_is_killed(broker, make_worker, backend, sink_check):
    worker = make_worker(OTEL_EXPORTER_OTLP_ENDPOINT=backend.url)
    worker.until(lambda: worker.is_ready, what="its consumer")

    (_, taken), code = sink_check(broker)
    assert (taken.state, code) == ("ok", 0)
    assert taken.found.startswith("a worker takes the records")

    until(lambda: in_work(broker) == 0, what="the doctor's record to be scored")
    worker.kill()
    (_, taken), code = sink_check(broker)
    assert (taken.state, code) == ("failed", 1)
    assert taken.found == "no worker takes records: 1 wait in the stream ragspan, 0 are in flight"


MAY_NOT_HEAR = """
authorization {
  users = [
    { user: "owner", password: "all" }
    { user: "app", password: "some", permissions: { publish: [">"], subscribe: ["_INBOX_app.>"] } }
  ]
}
"""


def test_a_missing_permission_is_named(make_broker, sink_check):
    broker = make_broker(config=MAY_NOT_HEAR, view="owner:all")
    broker.start()
    broker.make_stream(name="ragspan", subjects=["ragspan.records"])

    (refused,), _ = sink_check(broker, RAGSPAN_SINK=f"nats://app:some@127.0.0.1:{broker.port}")

    assert refused.state == "failed"
    assert 'permissions violation for subscription to "_inbox' in refused.found.lower()
