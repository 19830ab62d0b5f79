"""Users of the broker who may do no more than docs/fleet.md gives them."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from nats.errors import TimeoutError as NoAnswerError
from submitted import a_record, submit
from waiting import until
from worker_parts import consumer_of

from ragspan_nats import BrokerAccess
from ragspan_nats.connection import BrokerClient, ensure_consumer
from ragspan_nats.delivery import Delivery
from ragspan_nats.settings import Stream, WorkerOptions

STREAM = Stream()
DOCUMENTATION = (Path(__file__).parents[3] / "docs" / "fleet.md").read_text(encoding="utf-8")
(USERS,) = re.findall(r"^```text\n(authorization \{.*?^\})\n```", DOCUMENTATION, re.DOTALL | re.MULTILINE)
OWNER = "{ user: owner, password: OWNER }\n    { user: application, password"


def signs_in(user):
    return {
        "RAGSPAN_NATS_USER": user,
        "RAGSPAN_NATS_PASSWORD": user.upper(),
        "RAGSPAN_NATS_INBOX_PREFIX": f"_INBOX_{user}",
    }


def access(broker, user):
    return BrokerAccess(url=broker.url, user=user, password=user.upper(), inbox_prefix=f"_INBOX_{user}")


@asynccontextmanager
async def client_of(broker, user):
    client = BrokerClient(must_encrypt=False)
    await client.connect(**access(broker, user).options(), error_cb=told)
    try:
        yield client
    finally:
        await client.close()


async def told(error):
    """Of a violation; the broker's log tells of it as well."""


@pytest.fixture
def broker(make_broker):
    """A broker with the users of the documentation, and one who may do everything, for the tests' own look into it."""
    config = USERS.replace("{ user: application, password", OWNER)
    made = make_broker(config=config, view={"user": "owner", "password": "OWNER"})
    made.start()
    return made


@pytest.fixture
def worker(make_worker, backend):
    made = make_worker(
        OTEL_EXPORTER_OTLP_ENDPOINT=backend.url, RAGSPAN_JUDGE="overlap", PYTHONUNBUFFERED="1", **signs_in("worker")
    )
    made.until_it_says("records of stream")
    return made


def dead_letters(broker, *arguments, monkeypatch):
    for name, value in signs_in("operator").items():
        monkeypatch.setenv(name, value)
    command = [sys.executable, "-m", "ragspan.cli", "dead-letters", *arguments, "--broker", broker.url]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.slow
def test_they_are_enough_for_a_record_and_for_a_dead_letter(broker, worker, backend, make_sink, monkeypatch):
    until(lambda: broker.stream(STREAM.name), what="the worker to make the streams", patience=60)
    sink = make_sink(access(broker, "application"))
    submit(sink, a_record())
    worker.until(lambda: backend.records() == {"r-1"}, what="a scored record")
    broker.publish(STREAM.records, b"poison")
    worker.until(lambda: broker.stream(STREAM.dead_stream).messages == 1, what="a dead letter")

    assert "invalid_record" in dead_letters(broker, "list", monkeypatch=monkeypatch)
    assert "1 record returned" in dead_letters(broker, "retry", "--all", monkeypatch=monkeypatch)
    worker.until(lambda: broker.stream(STREAM.dead_stream).last_seq == 2, what="the poison to come back")
    worker.until(lambda: broker.stream(STREAM.name).messages == 0, what="an empty stream")
    assert worker.ends() == 0
    assert "Violation" not in broker.log
    assert "could not" not in worker.log


async def test_they_are_enough_for_what_a_worker_does_beside_its_records(broker):
    """Heartbeats, a look at the consumer, and messages that the broker has lost sight of, which are put in once more."""
    broker.make_stream(name=STREAM.name, subjects=[STREAM.records], retention="workqueue")
    broker.publish(STREAM.records, b"lost")
    consumer = consumer_of(access(broker, "worker"))
    try:
        client = await consumer._connection.client()
        jetstream = client.jetstream()
        await ensure_consumer(jetstream, STREAM, WorkerOptions())
        messages = await (await jetstream.pull_subscribe_bind(STREAM.consumer, STREAM.name)).fetch(1, timeout=10)
        await consumer.send_heartbeat([Delivery.of(messages[0])])
        await messages[0].nak(delay=3600)
        await consumer.recover_orphans()
        await jetstream.get_msg(STREAM.name, 1)
        await jetstream.delete_msg(STREAM.name, 1)
        await client.flush()
    finally:
        await consumer.close()
    assert "Violation" not in broker.log


async def test_an_application_cannot_read_what_others_wrote(broker):
    broker.make_stream(name=STREAM.name, subjects=[STREAM.records])
    broker.publish(STREAM.records, b"what a user wrote")
    async with client_of(broker, "application") as client:
        with pytest.raises(NoAnswerError):
            await client.jetstream(timeout=1).get_msg(STREAM.name, 1)
        await client.subscribe("_INBOX_worker.>")
        await client.flush()
    for violation in (
        'Subscription Violation - User "application", Subject "_INBOX_worker.>"',
        'Publish Violation - User "application", Subject "$JS.API.STREAM.MSG.GET.ragspan"',
    ):
        # The broker answers first, and writes its log after that.
        await asyncio.to_thread(until, lambda text=violation: text in broker.log, what=violation)


async def test_a_worker_that_may_not_acknowledge_says_which_permission_is_missing(make_broker, caplog):
    config = USERS.replace("{ user: application, password", OWNER).replace('"$JS.ACK.ragspan.ragspan-workers.>"', "")
    broker = make_broker(config=config, view={"user": "owner", "password": "OWNER"})
    broker.start()
    broker.make_stream(name=STREAM.name, subjects=[STREAM.records], retention="workqueue")
    broker.publish(STREAM.records, b"one")
    consumer = consumer_of(access(broker, "worker"))
    try:
        client = await consumer._connection.client()
        await ensure_consumer(client.jetstream(), STREAM, WorkerOptions())
        (message,) = await (await client.jetstream().pull_subscribe_bind(STREAM.consumer, STREAM.name)).fetch(1)
        await client.publish("elsewhere", b"")  # another violation does not hide the one that matters
        await consumer.send_heartbeat([Delivery.of(message)])
        await client.flush()
        await asyncio.to_thread(until, lambda: "$js.ack" in caplog.text, what="the broker's refusal")
    finally:
        await consumer.close()

    assert "does not permit us to publish to elsewhere" in caplog.text
    assert "does not permit us to publish to $js.ack.ragspan.ragspan-workers." in caplog.text
    assert "docs/fleet.md" in caplog.text
