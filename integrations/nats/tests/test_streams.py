"""The streams and the consumer: their names, their limits, and that they are made once."""

from __future__ import annotations

import asyncio

import pytest
from nats.js.api import AckPolicy, DiscardPolicy, RetentionPolicy, StorageType

from ragspan import ConfigurationError
from ragspan_nats.connection import ensure_consumer, ensure_streams
from ragspan_nats.settings import Stream, WorkerOptions

STREAM = Stream()
NO_SECONDS = [0, -1, float("nan"), float("inf"), True, "5", None]
NO_SIZES = [0, -1, 2.5, float("nan"), True, "5", None]


def info(broker, stream):
    return broker.ask(lambda client: client.jetstream().stream_info(stream))


def ensure(broker, **limits):
    broker.ask(lambda client: ensure_streams(client.jetstream(), Stream(**limits)))


def test_all_names_follow_from_the_streams():
    names = Stream(name="answers_2-x")
    assert (names.records, names.dead_letters) == ("answers_2-x.records", "answers_2-x.dead_letters")
    assert (names.consumer, names.dead_stream) == ("answers_2-x-workers", "answers_2-x-dead-letters")


@pytest.mark.parametrize("name", ["", "a.b", ">", "a" * 65, "naïve", "a\n"])
def test_a_name_that_no_stream_can_have_is_refused(name):
    with pytest.raises(ConfigurationError, match="stream is"):
        Stream(name=name)


@pytest.mark.parametrize(
    ("names", "values", "wanted"),
    [
        (["max_age", "duplicate_window", "dead_letter_age"], NO_SECONDS, "a number of seconds, more than 0"),
        (["max_records", "max_bytes", "dead_letter_bytes", "replicas"], NO_SIZES, "a whole number"),
    ],
)
def test_a_limit_that_is_none_is_named(names, values, wanted):
    for name in names:
        for value in values:
            with pytest.raises(ConfigurationError, match=f"{name} is .*, but should be {wanted}"):
                Stream(**{name: value})


def test_limits_may_come_from_the_environment(monkeypatch):
    assert Stream.from_environment() == Stream()
    monkeypatch.setenv("RAGSPAN_NATS_MAX_RECORDS", "5000000")
    monkeypatch.setenv("RAGSPAN_NATS_MAX_BYTES", " 1000000 ")
    monkeypatch.setenv("RAGSPAN_NATS_REPLICAS", "3")
    assert Stream.from_environment() == Stream(max_records=5_000_000, max_bytes=1_000_000, replicas=3)


@pytest.mark.parametrize("name", ["RAGSPAN_NATS_MAX_RECORDS", "RAGSPAN_NATS_MAX_BYTES", "RAGSPAN_NATS_REPLICAS"])
@pytest.mark.parametrize("value", ["0", "-1", "2.5", "many", "1e6"])
def test_a_limit_of_the_environment_that_is_none_is_named(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=f"{name}: .* is .*, but should be a whole number"):
        Stream.from_environment()


def test_missing_streams_are_made_and_existing_ones_left_alone(broker):
    ensure(broker, max_bytes=1_000_000, max_age=7200.0, duplicate_window=60.0, dead_letter_bytes=50_000)
    broker.publish(STREAM.records, b"kept")
    ensure(broker, max_bytes=2_000_000)

    records, dead = info(broker, STREAM.name).config, info(broker, STREAM.dead_stream).config
    assert records.subjects == [STREAM.records]
    assert (records.retention, records.discard) == (RetentionPolicy.WORK_QUEUE, DiscardPolicy.NEW)
    assert (records.max_bytes, records.max_age, records.duplicate_window) == (1_000_000, 7200.0, 60.0)
    assert (records.storage, records.num_replicas) == (StorageType.FILE, 1)
    assert dead.subjects == [STREAM.dead_letters]
    assert (dead.retention, dead.discard, dead.max_bytes) == (RetentionPolicy.LIMITS, DiscardPolicy.OLD, 50_000)
    assert [message.payload for message in broker.messages(STREAM.name)] == [b"kept"]


def test_many_may_make_the_streams_at_the_same_time(broker):
    async def all_at_once(client):
        calls = [ensure_streams(client.jetstream(), Stream(max_bytes=1_000_000 + each)) for each in range(10)]
        await asyncio.gather(*calls)

    broker.ask(all_at_once)
    assert broker.stream(STREAM.name).messages == 0


def test_the_workers_share_a_consumer_that_never_gives_a_record_up(broker):
    ensure(broker)

    async def consumer(client):
        await ensure_consumer(client.jetstream(), STREAM, WorkerOptions(ack_wait=30.0, max_ack_pending=100))
        await ensure_consumer(client.jetstream(), STREAM, WorkerOptions(ack_wait=60.0, max_ack_pending=200))
        return await client.jetstream().consumer_info(STREAM.name, STREAM.consumer)

    config = broker.ask(consumer).config
    assert (config.ack_policy, config.max_deliver) == (AckPolicy.EXPLICIT, -1)
    assert (config.ack_wait, config.max_ack_pending) == (60.0, 200)  # the later settings count
