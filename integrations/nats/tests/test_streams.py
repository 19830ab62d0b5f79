"""The streams and the consumer: their names, their limits, and that they are made once."""

from __future__ import annotations

import inspect

import pytest
from nats.js.api import AckPolicy, DiscardPolicy, RetentionPolicy, StorageType

from ragspan import ConfigurationError
from ragspan_nats import NatsSink
from ragspan_nats.connection import ensure_streams
from ragspan_nats.consumer import ensure_consumer
from ragspan_nats.settings import Stream, WorkerOptions

STREAM = Stream()


def info(broker, stream):
    return broker.ask(lambda client: client.jetstream().stream_info(stream))


def ensure(broker):
    broker.ask(lambda client: ensure_streams(client.jetstream(), STREAM))


@pytest.mark.parametrize("name", ["", "a.b", ">", "a" * 65, "naïve", "a\n"])
def test_a_name_that_no_stream_can_have_is_refused(name):
    with pytest.raises(ConfigurationError, match=r"^stream is .*, but should be letters, digits, '-' and '_'$"):
        Stream(name=name)


def test_how_a_worker_works_and_a_sink_waits_where_nothing_is_said():
    times = {"ack_wait": 30.0, "drain_timeout": 25.0, "export_retry_timeout": 600.0}
    assert WorkerOptions() == WorkerOptions(concurrency=16, max_deliveries=5, **times)
    sizes = {"queue_size": 2048, "queue_bytes": 2**26, "retry_timeout": 600.0, "exit_timeout": 10.0}
    told = {"stream": "ragspan", "redact": None, "unknown_contexts": "skip", "name": "ragspan", "meter_provider": None}
    assert {each.name: each.default for each in inspect.signature(NatsSink).parameters.values()} == sizes | told | {
        "broker": inspect.Parameter.empty
    }


def test_copies_may_come_from_the_environment_and_a_number_that_is_none_is_named(monkeypatch):
    assert Stream.from_environment() == Stream()
    monkeypatch.setenv("RAGSPAN_NATS_REPLICAS", "3")
    assert Stream.from_environment() == Stream(replicas=3)
    for value in ("0", "6", "2.5", "many"):
        monkeypatch.setenv("RAGSPAN_NATS_REPLICAS", value)
        with pytest.raises(
            ConfigurationError, match=r"^RAGSPAN_NATS_REPLICAS is .*, but should be a whole number from 1 to 5$"
        ):
            Stream.from_environment()


def test_missing_streams_are_made_and_existing_ones_left_alone(broker):
    broker.make_stream(name=STREAM.name, subjects=[STREAM.records], max_bytes=1_000_000, retention="workqueue")
    broker.publish(STREAM.records, b"kept")
    ensure(broker)

    records, dead = info(broker, STREAM.name).config, info(broker, STREAM.dead_stream).config
    assert records.max_bytes == 1_000_000
    assert (dead.subjects, dead.storage, dead.num_replicas) == ([STREAM.dead_letters], StorageType.FILE, 1)
    assert (dead.retention, dead.discard) == (RetentionPolicy.LIMITS, DiscardPolicy.OLD)
    assert (dead.max_bytes, dead.max_age, dead.duplicate_window) == (256 * 1024**2, 30 * 24 * 3600.0, 600.0)
    assert dead.description == "Records that ragspan's workers could not score, with the reasons"
    assert [message.payload for message in broker.messages(STREAM.name)] == [b"kept"]


def test_records_wait_until_a_worker_has_scored_them_and_a_full_stream_refuses(broker):
    ensure(broker)

    records = info(broker, STREAM.name).config
    assert (records.subjects, records.max_bytes) == ([STREAM.records], 1024**3)
    assert records.description == "Answers that wait to be scored by ragspan's workers"
    assert (records.retention, records.discard) == (RetentionPolicy.WORK_QUEUE, DiscardPolicy.NEW)
    assert (records.max_msgs, records.max_age, records.duplicate_window) == (100_000, 3 * 24 * 3600.0, 600.0)


def test_the_workers_share_a_consumer_that_never_gives_a_record_up(broker):
    ensure(broker)

    async def consumer(client):
        await ensure_consumer(client, STREAM, 30.0)
        await ensure_consumer(client, STREAM, 60.0)
        return await client.jetstream().consumer_info(STREAM.name, STREAM.consumer)

    config = broker.ask(consumer).config
    assert (config.ack_policy, config.max_deliver, config.max_ack_pending) == (AckPolicy.EXPLICIT, -1, 10_000)
    assert (config.filter_subject, config.ack_wait) == (STREAM.records, 60.0)  # the later settings count
