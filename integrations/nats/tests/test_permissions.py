"""Users of the broker who may do no more than docs/fleet.md gives them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from submitted import a_record, submit
from waiting import until

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


@pytest.mark.slow
def test_they_are_enough_for_a_record_and_for_a_dead_letter(broker, run_worker, backend, make_sink, monkeypatch):
    monkeypatch.setenv("RAGSPAN_NATS_INBOX_PREFIX", "_INBOX_worker")
    monkeypatch.setenv("RAGSPAN_JUDGING", "thread")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", backend.url)

    def use(log):
        until(lambda: broker.stream(STREAM.name), what="the worker to make the streams")
        submit(make_sink(access(broker, "application")), a_record())
        broker.publish(STREAM.records, b"poison")
        until(lambda: broker.stream(STREAM.dead_stream).messages == 1, what="a dead letter")
        until(lambda: broker.stream(STREAM.name).messages == 0, what="an empty stream")

    code, said = run_worker("--broker", url_of(broker, "worker"), use=use)

    assert (code, said.splitlines()[-1]) == (0, "ragspan worker: 1 record scored, 0 given back, 1 put aside")
    assert backend.records() == {"r-1"}
    assert "Violation" not in broker.log
