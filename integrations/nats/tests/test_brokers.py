"""The tests' own broker does what the tests rely on."""

from __future__ import annotations

import time

import pytest
from brokers import server_program, until
from nats.errors import Error

NAME = "answers"


def holds(broker, *payloads):
    broker.make_stream(name=NAME, subjects=["answers.>"])
    for payload in payloads:
        broker.publish("answers.new", payload, {"Kind": "test"})


def test_a_stream_is_seen_with_its_messages(broker):
    holds(broker, b"one", b"two")

    assert broker.stream(NAME).messages == 2
    assert [(message.sequence, message.payload) for message in broker.messages(NAME)] == [(1, b"one"), (2, b"two")]
    assert {message.headers["Kind"] for message in broker.messages(NAME)} == {"test"}


def test_a_stream_that_is_not_there_is_none(broker):
    assert broker.stream("other") is None
    assert broker.messages("other") == []


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_messages_outlive_the_process(broker, end):
    holds(broker, b"one")
    url = broker.url

    getattr(broker, end)()
    assert not broker.is_running
    broker.start()

    assert broker.url == url
    assert [message.payload for message in broker.messages(NAME)] == [b"one"]


def test_a_broker_asks_for_what_its_configuration_says(make_broker):
    broker = make_broker(
        config='authorization { user: "ann", password: "secret" }', view={"user": "ann", "password": "secret"}
    )
    broker.start()
    assert broker.stream(NAME) is None

    broker.view = {"user": "ann", "password": "wrong"}
    with pytest.raises(Error):
        broker.stream(NAME)


def test_jetstream_has_the_limits_that_it_is_given(make_broker):
    broker = make_broker(jetstream="max_file_store: 65536")
    broker.start()
    with pytest.raises(Error, match="insufficient storage"):
        broker.make_stream(name=NAME, subjects=["answers.>"], max_bytes=1024 * 1024)


def test_two_brokers_are_two(make_broker):
    one, other = make_broker(), make_broker()
    one.start()
    other.start()
    holds(one, b"one")
    assert other.stream(NAME) is None


async def test_a_broker_can_be_looked_into_from_an_event_loop(broker):
    assert broker.stream(NAME) is None


def test_a_missing_program_skips_a_test_but_not_in_ci(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception):
        server_program()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception):
        server_program()


def test_waiting_ends_when_the_patience_does():
    began = time.monotonic()
    with pytest.raises(AssertionError, match=r"waited 0.1 s for nothing"):
        until(lambda: False, what="nothing", patience=0.1)
    assert time.monotonic() - began < 5
