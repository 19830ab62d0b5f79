"""The sink, with a broker that is there."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from submitted import FakeCapture, a_record, records, stored_ids, stored_records, submit
from waiting import PATIENCE, until

from ragspan import ConfigurationError
from ragspan.engine import EngineStats
from ragspan.messages import Message
from ragspan.records import Generation, Reranking, RetrievedContext, SpanAnchor
from ragspan_nats import NatsSink
from ragspan_nats.message import MESSAGE_ID

DOCUMENTS = (RetrievedContext(text="Quibble", id="d1"),)
RULES = "The office of the society stands in the old town of Bern, and it opens at nine."


def test_what_is_submitted_is_in_the_stream_as_a_worker_reads_it(broker, make_sink):
    sink = make_sink(broker)
    record = a_record(parent=SpanAnchor(trace_id=0xABC, span_id=0xDEF), metadata={"page": 3, "odd": object()})

    submit(sink, record)
    (stored,) = stored_records(broker)
    assert stored.to_json() == record.to_json()
    (message,) = broker.messages("ragspan")
    assert message.subject == "ragspan.records"
    assert message.headers[MESSAGE_ID] == "r-1"
    assert sink.stats() == EngineStats(submitted=1, finished=1)


@pytest.mark.parametrize("content", ["true", "spans", "events"])
def test_prompts_are_published_only_where_spans_may_show_them(broker, make_sink, monkeypatch, content):
    monkeypatch.setenv("RAGSPAN_CAPTURE_CONTENT", content)
    times = {"started_ns": 1, "ended_ns": 2}
    model = Generation(model="m", provider=None, prompt=(Message(role="user", text="Quezzle"),), **times)
    ranking = Reranking(name="r", query="Quezzle", given=DOCUMENTS, contexts=DOCUMENTS, **times)
    record = a_record(generations=(model,), rerankings=(ranking,))
    submit(make_sink(broker), record)

    if content == "events":
        bare = (replace(DOCUMENTS[0], text=""),)
        ranking = replace(ranking, query=None, given=bare, contexts=bare)
        record = replace(record, generations=(replace(model, prompt=()),), rerankings=(ranking,))
    assert stored_records(broker) == [record]


@pytest.mark.parametrize(("rule", "kept"), [("prompt", [RULES]), ("skip", [])])
def test_evidence_is_taken_from_prompts_before_they_are_left_out(broker, make_sink, rule, kept):
    prompt = (Message(role="user", text=f"{RULES}\nWhy?"),)
    model = Generation(model="m", provider=None, prompt=prompt, started_ns=1, ended_ns=2)
    submit(make_sink(broker, unknown_contexts=rule), a_record(contexts=None, generations=(model,)))

    (stored,) = stored_records(broker)
    assert [one.text for one in stored.background] == kept


def test_a_record_that_is_submitted_twice_is_in_the_stream_once(broker, make_sink):
    sink = make_sink(broker)
    for _ in range(3):
        sink.submit(a_record())
    assert sink.flush(PATIENCE)

    assert stored_ids(broker) == ["r-1"]
    assert sink.stats().finished == 3


def test_a_capture_that_fails_costs_itself_only(broker, make_sink, caplog):
    sink = make_sink(broker)

    submit(sink, FakeCapture(lambda: "SECRET"), a_record("fine"))

    assert sink.stats().dropped == {"capture_error": 1}
    assert stored_ids(broker) == ["fine"]
    assert "SECRET" not in caplog.text


def test_a_record_above_the_brokers_payload_is_too_large_at_once(make_broker, make_sink, caplog):
    broker = make_broker(config="max_payload: 4096")
    broker.start()
    sink = make_sink(broker)
    fits = 4096 - len(a_record("exact", response="").to_json()) - len("NATS/1.0\r\nNats-Msg-Id: exact\r\n\r\n")

    submit(sink, a_record("exact", response="x" * fits), a_record("above", response="x" * (fits + 1)))

    assert stored_ids(broker) == ["exact"]  # headers count
    assert sink.stats().dropped == {"too_large": 1}
    assert sink.stats().errors == {}
    assert caplog.messages[0] == "a record is larger than the broker takes: 4097 bytes"


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
    until(lambda: "ragspan-worker" not in {thread.name for thread in threading.enumerate()}, what="the thread's end")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stream": "a.b"}, "stream is 'a.b', but should be letters, digits"),
        ({"queue_size": 0}, "queue_size is 0, but should be a whole number, at least 1"),
        ({"retry_timeout": -1}, "retry_timeout is -1, but should be a number of seconds, 0 or more"),
        ({"stream": 5}, "stream is 5, but should be a name or a Stream"),
        ({"broker": 5}, "broker is 5, but should be an address or a BrokerAccess"),
        (
            {"broker": ""},
            "no broker is named: give --broker nats://host:4222, or set RAGSPAN_SINK to it; --otlp HOST:PORT receives",
        ),
    ],
)
def test_a_wrong_argument_is_named_at_once(options, message):
    with pytest.raises(ConfigurationError, match=f"^{message}"):
        NatsSink(**{"broker": "nats://localhost"} | options)
