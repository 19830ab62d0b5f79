"""Users of the broker who may do no more than docs/fleet.md gives them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from submitted import a_record, submit
from waiting import until
from worker_process import start_worker

from ragspan_nats import BrokerAccess
from ragspan_nats.settings import Stream

STREAM = Stream()
DOCUMENTATION = (Path(__file__).parents[3] / "docs" / "fleet.md").read_text(encoding="utf-8")
(USERS,) = re.findall(r"^```text\n(authorization \{.*?^\})\n```", DOCUMENTATION, re.DOTALL | re.MULTILINE)
OWNER = "{ user: owner, password: OWNER }\n    { user: application, password"


def url_of(broker, user):
    return broker.url.replace("//", f"//{user}:{user.upper()}@")


def access(broker, user):
    return BrokerAccess(url=url_of(broker, user), inbox_prefix=f"_INBOX_{user}")


@pytest.fixture
def broker(make_broker):
    """A broker with the users of the documentation, and one who may do everything, for the tests' own look into it."""
    config = USERS.replace("{ user: application, password", OWNER)
    made = make_broker(config=config, view="owner:OWNER")
    made.start()
    return made


@pytest.fixture
def start_worker_of(tmp_path, backend):
    """Starts a worker that signs in as `worker`."""
    started = []

    def start(broker):
        inbox = {"RAGSPAN_NATS_INBOX_PREFIX": "_INBOX_worker", "OTEL_EXPORTER_OTLP_ENDPOINT": backend.url}
        log = tmp_path / "worker.log"
        started.append(start_worker(broker, log, "--broker", url_of(broker, "worker"), PYTHONUNBUFFERED="1", **inbox))
        return started[-1]

    yield start
    for worker in started:
        worker.kill()


@pytest.mark.slow
def test_they_are_enough_for_a_record_and_for_a_dead_letter(broker, start_worker_of, backend, make_sink):
    worker = start_worker_of(broker)
    until(lambda: broker.stream(STREAM.name), what="the worker to make the streams", patience=60)
    submit(make_sink(access(broker, "application")), a_record())
    worker.until(lambda: backend.records() == {"r-1"}, what="a scored record")
    broker.publish(STREAM.records, b"poison")
    worker.until(lambda: broker.stream(STREAM.dead_stream).messages == 1, what="a dead letter")

    worker.until(lambda: broker.stream(STREAM.name).messages == 0, what="an empty stream")
    assert worker.ends() == 0
    assert "Violation" not in broker.log
    assert "could not" not in worker.log
