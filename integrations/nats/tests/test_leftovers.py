"""Messages that the consumer has delivered and waits for no longer, but which are in the stream still."""

from __future__ import annotations

import asyncio
import shutil

import pytest
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy
from waiting import until
from worker_parts import consumer_of
from worker_process import in_work

from ragspan_nats.connection import ensure_consumer, ensure_streams
from ragspan_nats.message import MESSAGE_ID
from ragspan_nats.settings import BrokerAccess, Stream, WorkerOptions

STREAM = Stream()


@pytest.fixture
def broker(own_broker):
    return own_broker


@pytest.fixture
def stream(broker):
    """A work queue whose consumer gives a message up after one delivery: as a broker does that was killed."""

    def make(retention=RetentionPolicy.WORK_QUEUE):
        broker.make_stream(name=STREAM.name, subjects=[STREAM.records, "other"], retention=retention)
        config = ConsumerConfig(
            durable_name=STREAM.consumer,
            filter_subject=STREAM.records,
            ack_policy=AckPolicy.EXPLICIT,
            max_deliver=1,
            ack_wait=0.3,
        )
        broker.ask(lambda client: client.jetstream().add_consumer(STREAM.name, config))

    return make


def deliver(broker):
    """Have a message delivered, and the consumer wait for it no longer."""

    async def fetch(client, timeout=5):
        consumer = await client.jetstream().pull_subscribe_bind(STREAM.consumer, STREAM.name)
        try:
            return len(await consumer.fetch(1, timeout=timeout))
        except (TimeoutError, asyncio.TimeoutError):  # two, before Python 3.11
            return 0

    def is_given_up():  # the broker only looks where somebody asks for more
        assert broker.ask(lambda client: fetch(client, 0.2)) == 0
        return in_work(broker) == 0

    assert broker.ask(fetch) == 1
    until(is_given_up, what="the consumer to give the message up")


def prepared(broker, number):
    """Streams and consumer as a worker makes them, and so many messages."""

    async def prepare(client):
        jetstream = client.jetstream()
        await ensure_streams(jetstream, STREAM)
        await ensure_consumer(jetstream, STREAM, WorkerOptions(ack_wait=60))
        for place in range(number):
            await jetstream.publish(STREAM.records, b"%d" % place)

    broker.ask(prepare)


def acknowledge(broker, number):
    """Have so many messages delivered and acknowledged."""

    async def fetch(client):
        consumer = await client.jetstream().pull_subscribe_bind(STREAM.consumer, STREAM.name)
        messages = []
        while len(messages) < number:
            messages += await consumer.fetch(number - len(messages), timeout=10)
        for message in messages:
            await message.ack_sync(timeout=10)

    broker.ask(fetch)


def look(broker):
    """What workers do every few seconds."""

    async def look_once():
        consumer = consumer_of(BrokerAccess(url=broker.url))
        try:
            await consumer.recover_orphans()
        finally:
            await consumer.close()

    asyncio.run(look_once())


def test_they_are_put_at_the_end_once_more_and_what_others_keep_there_is_left(broker, stream):
    stream()
    broker.publish("other", b"not a record")
    broker.publish(STREAM.records, b"lost", {MESSAGE_ID: "one", "Content-Encoding": "gzip"})
    deliver(broker)
    broker.publish(STREAM.records, b"waiting")

    look(broker)

    *others, again = broker.messages(STREAM.name)
    assert [message.payload for message in others] == [b"not a record", b"waiting"]
    assert (again.payload, again.headers["Content-Encoding"]) == (b"lost", "gzip")


def test_so_are_those_that_a_broker_noted_as_acknowledged_and_forgot_to_remove(broker):
    prepared(broker, 5)
    broker.stop()
    folder = next(broker.folder.glob(f"store/**/streams/{STREAM.name}/msgs"))
    shutil.copytree(folder, broker.folder / "before")
    broker.start()
    acknowledge(broker, 3)
    broker.stop()
    shutil.rmtree(folder)
    shutil.copytree(broker.folder / "before", folder)
    broker.start()

    look(broker)

    assert [message.payload for message in broker.messages(STREAM.name)] == [b"3", b"4", b"0", b"1", b"2"]
    acknowledge(broker, 5)
    assert broker.messages(STREAM.name) == []


def test_a_stream_that_keeps_what_was_acknowledged_is_left_alone(broker, stream):
    stream(RetentionPolicy.LIMITS)
    broker.publish(STREAM.records, b"scored")
    deliver(broker)

    look(broker)

    assert [message.sequence for message in broker.messages(STREAM.name)] == [1]
