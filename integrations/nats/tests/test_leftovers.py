"""Messages that the consumer has delivered and waits for no longer, but which are in the stream still."""

from __future__ import annotations

import asyncio
import shutil

import pytest
from brokers import until
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy
from worker_parts import consumer_of

from ragspan_nats.connection import ensure_consumer, ensure_streams
from ragspan_nats.message import EARLIER_DELIVERIES, MESSAGE_ID
from ragspan_nats.settings import BrokerAccess, Stream, WorkerOptions

STREAM = Stream()


@pytest.fixture
def broker(own_broker):
    return own_broker


@pytest.fixture
def stream(broker):
    """A work queue whose consumer gives a message up after one delivery: as a broker does that was killed."""

    def make(retention=RetentionPolicy.WORK_QUEUE, ack_wait=0.3):
        broker.make_stream(name=STREAM.name, subjects=[STREAM.records, "other"], retention=retention)
        config = ConsumerConfig(
            durable_name=STREAM.consumer,
            filter_subject=STREAM.records,
            ack_policy=AckPolicy.EXPLICIT,
            max_deliver=1,
            ack_wait=ack_wait,
        )
        broker.ask(lambda client: client.jetstream().add_consumer(STREAM.name, config))

    return make


def deliver(broker, number, *, forget=True):
    """Have so many messages delivered, and the consumer wait for them no longer."""

    async def fetch(client, wanted=number, timeout=5):
        consumer = await client.jetstream().pull_subscribe_bind(STREAM.consumer, STREAM.name)
        try:
            return len(await consumer.fetch(wanted, timeout=timeout))
        except (TimeoutError, asyncio.TimeoutError):  # two, before Python 3.11
            return 0

    def is_given_up():  # the broker only looks where somebody asks for more
        assert broker.ask(lambda client: fetch(client, 1, 0.2)) == 0
        return pending(broker) == 0

    assert broker.ask(fetch) == number
    if forget:
        until(is_given_up, what="the consumer to give the messages up")


def pending(broker):
    consumer = broker.ask(lambda client: client.jetstream().consumer_info(STREAM.name, STREAM.consumer))
    return consumer.num_ack_pending


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


def look(broker, times=1):
    """What so many workers do at the same time."""

    async def look_once():
        consumer = consumer_of(BrokerAccess(url=broker.url))
        try:
            await consumer.recover_orphans()
        finally:
            await consumer.close()

    async def look_at_once():
        return await asyncio.gather(*(look_once() for _ in range(times)), return_exceptions=True)

    return asyncio.run(look_at_once())


def test_they_are_put_at_the_end_once_more_and_say_so(broker, stream):
    stream()
    broker.publish(STREAM.records, b"lost", {MESSAGE_ID: "one", "Content-Encoding": "gzip", EARLIER_DELIVERIES: "2"})
    deliver(broker, 1)
    broker.publish(STREAM.records, b"waiting")

    assert look(broker) == [None]

    waiting, again = broker.messages(STREAM.name)
    assert (waiting.payload, again.payload) == (b"waiting", b"lost")
    assert again.headers[EARLIER_DELIVERIES] == "3"
    assert again.headers["Content-Encoding"] == "gzip"


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

    found = [(message.payload, message.headers.get(EARLIER_DELIVERIES)) for message in broker.messages(STREAM.name)]
    assert found == [(b"3", None), (b"4", None), (b"0", "1"), (b"1", "1"), (b"2", "1")]
    acknowledge(broker, 5)
    assert broker.messages(STREAM.name) == []


def test_several_workers_put_them_there_once(broker, stream):
    stream()
    for number in range(5):
        broker.publish(STREAM.records, f"lost {number}".encode())
    deliver(broker, 5)

    look(broker, times=4)

    payloads = [message.payload for message in broker.messages(STREAM.name)]
    assert sorted(payloads) == [f"lost {number}".encode() for number in range(5)]


def test_what_others_keep_in_the_stream_is_theirs(broker, stream):
    stream()
    broker.publish("other", b"not a record")
    broker.publish(STREAM.records, b"lost")
    deliver(broker, 1)

    look(broker)

    assert [(message.subject, message.payload) for message in broker.messages(STREAM.name)] == [
        ("other", b"not a record"),
        (STREAM.records, b"lost"),
    ]
    assert broker.messages(STREAM.name)[1].sequence == 3


def test_a_stream_that_keeps_what_was_acknowledged_is_left_alone(broker, stream):
    stream(RetentionPolicy.LIMITS)
    broker.publish(STREAM.records, b"scored")
    deliver(broker, 1)

    look(broker)

    assert [message.sequence for message in broker.messages(STREAM.name)] == [1]
