"""The sink, with a broker that is there."""

from __future__ import annotations

import gc
import json
import logging
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from brokers import PATIENCE, until
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from submitted import FakeCapture, a_record, records, stored_ids, stored_records, total

from ragspan import ConfigurationError, Generation, Message, SpanAnchor
from ragspan_nats import BrokerAccess, NatsSink, SinkStats, StreamLimits
from ragspan_nats.message import ENCODING, MESSAGE_ID, TRACEPARENT


def test_what_is_submitted_is_in_the_stream_as_a_worker_reads_it(broker, make_sink):
    sink = make_sink(broker)
    record = a_record(parent=SpanAnchor(trace_id=0xABC, span_id=0xDEF), metadata={"page": 3, "odd": object()})

    sink.submit(record)

    assert sink.flush(PATIENCE)
    (stored,) = stored_records(broker)
    assert stored.to_json() == record.to_json()
    (message,) = broker.messages("ragspan")
    assert message.subject == "ragspan.records"
    assert message.headers[MESSAGE_ID] == "r-1"
    assert message.headers[TRACEPARENT] == f"00-{0xABC:032x}-{0xDEF:016x}-01"
    assert sink.stats() == SinkStats(submitted=1, finished=1, published=1, dropped={}, errors={})


@pytest.mark.parametrize("content", ["true", "false"])
def test_prompts_are_published_only_where_spans_may_show_them(broker, make_sink, monkeypatch, content):
    monkeypatch.setenv("RAGSPAN_CAPTURE_CONTENT", content)
    prompt = (Message(role="user", text="Quezzle"),)
    record = a_record(generations=(Generation(model="m", provider=None, started_ns=1, ended_ns=2, prompt=prompt),))
    sink = make_sink(broker)
    sink.submit(record)
    assert sink.flush(PATIENCE)

    (stored,) = stored_records(broker)
    assert stored.generations[0].prompt == (prompt if content == "true" else ())


def test_a_record_that_is_submitted_twice_is_in_the_stream_once(broker, make_sink):
    sink = make_sink(broker)
    for _ in range(3):
        sink.submit(a_record())
    assert sink.flush(PATIENCE)

    assert stored_ids(broker) == ["r-1"]
    assert sink.stats().published == 3


def test_two_sinks_of_one_stream_are_one_stream(broker, make_sink):
    for name in ("one", "other"):
        sink = make_sink(broker, name=name)
        sink.submit(a_record("same"))
        sink.submit(a_record(name))
        assert sink.flush(PATIENCE)

    assert sorted(stored_ids(broker)) == ["one", "other", "same"]


def test_a_stream_has_the_name_that_the_sink_was_given(broker, make_sink):
    sink = make_sink(broker, stream="answers-2")
    sink.submit(a_record())
    assert sink.flush(PATIENCE)

    assert stored_ids(broker, "answers-2") == ["r-1"]
    assert broker.messages("answers-2")[0].subject == "answers-2.records"
    assert broker.stream("ragspan") is None


def test_streams_that_are_missing_are_made_with_the_limits_given(broker, make_sink):
    sink = make_sink(broker, limits=StreamLimits(max_bytes=1_000_000, max_age=60.0, dead_letter_bytes=500_000))
    sink.submit(a_record())
    assert sink.flush(PATIENCE)

    config = broker.ask(lambda client: client.jetstream().stream_info("ragspan")).config
    dead = broker.ask(lambda client: client.jetstream().stream_info("ragspan-dead-letters")).config
    assert (config.max_bytes, config.max_age, config.duplicate_window) == (1_000_000, 60.0, 60.0)
    assert dead.max_bytes == 500_000


def test_a_stream_that_is_there_is_left_as_it_is(broker, make_sink):
    broker.make_stream(name="ragspan", subjects=["ragspan.records"], max_msgs=7)
    sink = make_sink(broker)
    sink.submit(a_record())
    assert sink.flush(PATIENCE)

    assert broker.ask(lambda client: client.jetstream().stream_info("ragspan")).config.max_msgs == 7
    assert stored_ids(broker) == ["r-1"]


def test_records_above_a_size_are_compressed(broker, make_sink):
    sink = make_sink(broker, compress_above=2000)
    sink.submit(a_record("small"))
    sink.submit(a_record("large", contexts=["word " * 1000]))
    assert sink.flush(PATIENCE)

    small, large = sorted(broker.messages("ragspan"), key=lambda message: message.headers[MESSAGE_ID], reverse=True)
    assert ENCODING not in small.headers
    assert json.loads(small.payload)["record_id"] == "small"
    assert large.headers[ENCODING] == "gzip"
    assert len(large.payload) < 1000
    assert {record.record_id for record in stored_records(broker)} == {"small", "large"}


def test_a_capture_without_a_record_is_counted_as_such(broker, make_sink):
    sink = make_sink(broker)
    sink.submit(FakeCapture())
    sink.submit(a_record())
    assert sink.flush(PATIENCE)

    stats = sink.stats()
    assert (stats.nothing_to_publish, stats.published, stats.finished) == (1, 1, 2)
    assert stored_ids(broker) == ["r-1"]


def test_streams_are_made_with_the_limits_of_the_environment_where_none_are_given(broker, make_sink, monkeypatch):
    monkeypatch.setenv("RAGSPAN_NATS_MAX_BYTES", "1000000")
    sink = make_sink(broker)
    sink.submit(a_record())
    assert sink.flush(PATIENCE)
    assert broker.ask(lambda client: client.jetstream().stream_info("ragspan")).config.max_bytes == 1_000_000


@pytest.mark.parametrize("found", [ValueError("SECRET"), SystemExit("SECRET"), "SECRET", 7])
def test_a_capture_that_fails_costs_itself_only(broker, make_sink, caplog, found):
    sink = make_sink(broker)

    def make():
        if isinstance(found, BaseException):
            raise found
        return found

    sink.submit(FakeCapture(make))
    sink.submit(a_record())
    assert sink.flush(PATIENCE)

    assert sink.stats().dropped == {"capture_error": 1}
    assert stored_ids(broker) == ["r-1"]
    assert type(found).__name__ in caplog.text
    assert "SECRET" not in caplog.text


@pytest.mark.parametrize("size", [ValueError("no size"), "large", None])
def test_a_capture_that_cannot_say_its_size_is_dropped(broker, make_sink, size):
    sink = make_sink(broker)
    sink.submit(FakeCapture(a_record, size=size))
    assert sink.flush(PATIENCE)
    assert sink.stats().dropped == {"capture_error": 1}


def test_a_record_that_is_no_text_is_dropped(broker, make_sink):
    sink = make_sink(broker)
    sink.submit(a_record(parent=SpanAnchor(trace_id="none", span_id=1)))
    sink.submit(a_record("fine"))
    assert sink.flush(PATIENCE)
    assert sink.stats().dropped == {"capture_error": 1}
    assert stored_ids(broker) == ["fine"]


def test_a_record_above_the_brokers_payload_is_too_large_at_once(make_broker, make_sink, caplog):
    broker = make_broker(config="max_payload: 4096")
    broker.start()
    sink = make_sink(broker, compress_above=100_000)
    fits = 4096 - len(a_record("exact", response="").to_json()) - len("NATS/1.0\r\nNats-Msg-Id: exact\r\n\r\n")

    sink.submit(a_record("exact", response="x" * fits))
    sink.submit(a_record("above", response="x" * (fits + 1)))
    assert sink.flush(PATIENCE)

    assert stored_ids(broker) == ["exact"]  # headers count
    assert sink.stats().dropped == {"too_large": 1}
    assert sink.stats().errors == {}
    assert "xxx" not in caplog.text
    assert "a record is larger than the broker takes" in caplog.text


def test_a_record_above_the_streams_limit_is_too_large_at_once(broker, make_sink):
    broker.make_stream(name="ragspan", subjects=["ragspan.records"], max_msg_size=2000)
    sink = make_sink(broker, compress_above=100_000)
    sink.submit(a_record("above", response="x" * 3000))
    sink.submit(a_record("fine"))
    assert sink.flush(PATIENCE)

    assert sink.stats().dropped == {"too_large": 1}
    assert stored_ids(broker) == ["fine"]


@pytest.mark.slow
def test_a_record_that_no_worker_would_unpack_is_too_large(broker, make_sink):
    sink = make_sink(broker)
    sink.submit(a_record(response="x" * (33 * 1024 * 1024)))
    assert sink.flush(PATIENCE)
    assert sink.stats().dropped == {"too_large": 1}


def test_records_of_many_threads_are_all_published(broker, make_sink):
    sink = make_sink(broker)
    law = []

    def submit(thread):
        for number in range(200):
            sink.submit(a_record(f"{thread}-{number}"))
            if number % 20 == 0:
                stats = sink.stats()
                law.append(total(stats) == stats.submitted)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(submit, range(8)))
    assert sink.flush(PATIENCE)

    assert all(law)
    assert sink.stats() == SinkStats(submitted=1600, finished=1600, published=1600, dropped={}, errors={})
    assert broker.stream("ragspan").messages == 1600


def test_records_are_published_in_their_order(broker, make_sink):
    sink = make_sink(broker)
    for record in records(300):
        sink.submit(record)
    assert sink.flush(PATIENCE)
    assert stored_ids(broker) == [f"r-{number}" for number in range(300)]


def test_before_the_first_submit_there_is_no_thread(broker, make_sink):
    before = {thread.ident for thread in threading.enumerate()}
    sink = make_sink(broker)

    assert {thread.ident for thread in threading.enumerate()} <= before
    assert sink.flush(0)
    sink.submit(a_record())
    assert sink.flush(PATIENCE)
    assert "ragspan-publisher" in {thread.name for thread in threading.enumerate()}


def test_submit_returns_at_once_while_the_publisher_is_busy(broker, make_sink):
    sink = make_sink(broker)
    busy, done = threading.Event(), threading.Event()

    def hang():
        busy.set()
        done.wait(PATIENCE)

    sink.submit(FakeCapture(hang))
    assert busy.wait(PATIENCE)
    began = time.perf_counter()
    for record in records(100):
        sink.submit(record)
    took = time.perf_counter() - began
    done.set()

    assert sink.flush(PATIENCE)
    assert took < PATIENCE / 2
    assert sink.stats().published == 100


def test_a_capture_may_submit_and_ask_from_the_publishers_own_thread(broker, make_sink):
    sink = make_sink(broker)
    answers = []

    def make():
        sink.submit(a_record("inner"))
        answers.append(sink.flush(PATIENCE))
        return a_record("outer")

    sink.submit(FakeCapture(make))
    assert sink.flush(PATIENCE)
    until(lambda: sink.stats().published == 2, what="both records")

    assert answers == [False]
    assert sorted(stored_ids(broker)) == ["inner", "outer"]


def test_a_sink_that_is_shut_down_publishes_what_is_left_and_takes_nothing_more(broker, make_sink):
    sink = make_sink(broker)
    for record in records(50):
        sink.submit(record)

    report = sink.shutdown(PATIENCE)
    sink.submit(a_record("late"))

    assert report.abandoned == 0
    assert sink.shutdown(PATIENCE) is report
    assert sink.flush(0)
    assert len(stored_ids(broker)) == 50
    assert sink.stats().dropped == {"shutdown": 1}
    until(lambda: "ragspan-publisher" not in {thread.name for thread in threading.enumerate()}, what="the thread's end")


def test_the_connection_begins_with_the_first_submit_and_ends_with_the_sink(broker, make_sink):
    sink = make_sink(broker, name="answers")
    assert broker.connections == []

    sink.submit(a_record())
    assert sink.flush(PATIENCE)
    assert broker.connections == ["answers"]

    sink.shutdown(PATIENCE)
    until(lambda: broker.connections == [], what="the connection's end")


def test_a_block_publishes_what_was_submitted_in_it(broker):
    with NatsSink(broker.url) as sink:
        sink.submit(a_record())
    assert stored_ids(broker) == ["r-1"]


def test_what_others_report_shows_among_the_errors(broker, make_sink):
    sink = make_sink(broker)
    sink.count_error("callback")
    sink.count_error("callback")
    assert sink.stats().errors == {"callback": 2}


def test_a_sink_appears_in_the_metrics_about_ragspan(broker, make_sink):
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    sink = make_sink(broker, name="measured", meter_provider=provider, queue_size=10, queue_bytes=1000)
    sink.submit(a_record())
    sink.submit(FakeCapture())
    sink.submit(FakeCapture(size=2000))
    assert sink.flush(PATIENCE)

    (resource,) = reader.get_metrics_data().resource_metrics
    points = {
        metric.name: {
            tuple(value for key, value in sorted(point.attributes.items()) if key != "ragspan.engine"): point.value
            for point in metric.data.data_points
            if point.attributes["ragspan.engine"] == "measured"
        }
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert points["ragspan.records"] == {("published",): 1, ("nothing_to_score",): 1, ("queue_bytes", "dropped"): 1}
    assert points["ragspan.queue.size"] == {(): 0}
    assert points["ragspan.queue.capacity"] == {(): 10}
    assert points["ragspan.queue.capacity.bytes"] == {(): 1000}
    provider.shutdown()


def test_nothing_is_published_where_ragspan_is_turned_off(broker, make_sink, monkeypatch):
    monkeypatch.setenv("RAGSPAN_ENABLED", "false")
    monkeypatch.setenv("RAGSPAN_NATS_NKEY_FILE", "missing")  # is not even read
    before = {thread.ident for thread in threading.enumerate()}
    sink = make_sink(broker)
    sink.submit(a_record())

    assert sink.flush(0)
    assert sink.stats().dropped == {"not_running": 1}
    assert sink.shutdown(0).abandoned == 0
    assert {thread.ident for thread in threading.enumerate()} <= before
    assert broker.stream("ragspan") is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stream": "a.b"}, "stream is 'a.b'"),
        ({"stream": ""}, "stream is ''"),
        ({"queue_size": 0}, "queue_size is 0, but should be a whole number, at least 1"),
        ({"queue_bytes": 1.5}, r"queue_bytes is 1\.5"),
        ({"queue_size": True}, "queue_size is True"),
        ({"drop": "all"}, "drop is 'all', but should be 'oldest' or 'newest'"),
        ({"compress_above": -1}, "compress_above is -1"),
        ({"retry_timeout": -1}, "retry_timeout is -1, but should be a number of seconds, 0 or more"),
        ({"exit_timeout": float("nan")}, "exit_timeout is nan"),
        ({"exit_timeout": float("inf")}, "exit_timeout is inf"),
        ({"name": ""}, "name is ''"),
        ({"limits": 5}, "limits is 5, but should be StreamLimits"),
        ({"limits": object()}, "limits is a object"),
        ({"access": "nats://localhost"}, "access is 'nats://localhost'"),
    ],
)
def test_a_wrong_argument_is_named_at_once(options, message):
    with pytest.raises(ConfigurationError, match=message):
        NatsSink(None if "access" in options else "nats://localhost", **options)


def test_a_sink_needs_one_broker():
    with pytest.raises(ConfigurationError, match="no broker is named"):
        NatsSink()
    with pytest.raises(ConfigurationError, match="url and access name two brokers"):
        NatsSink("nats://one", access=BrokerAccess(url="nats://other"))
    assert NatsSink("nats://one", access=BrokerAccess(url="nats://one")).exit_timeout == 10.0
    assert NatsSink(access=BrokerAccess(url="nats://one"), exit_timeout=3).exit_timeout == 3


def test_a_sink_shows_no_secret(caplog):
    caplog.set_level(logging.DEBUG)
    sink = NatsSink("nats://user:SECRET@localhost")
    assert "SECRET" not in f"{sink!r} {sink._options!r} {sink._parts!r}"
    assert "SECRET" not in caplog.text


def test_a_sink_that_only_exists_is_collected():
    sink = NatsSink("nats://localhost")
    options = sink._options
    del sink
    gc.collect()
    assert sys.getrefcount(options) <= 2
