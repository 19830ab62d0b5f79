"""A worker in the test's own process, where a test can look into it."""

from __future__ import annotations

import asyncio
import threading

import pytest
from fakes import InMemoryTelemetry
from fleet_records import a_record
from servers.judge import FleetJudge
from waiting import PATIENCE, until
from worker_parts import a_delivery
from worker_process import STREAM, in_work, publish

from ragspan.config import Settings
from ragspan.telemetry import providers
from ragspan_nats import worker as worker_module
from ragspan_nats.settings import BrokerAccess, WorkerOptions
from ragspan_nats.worker import WorkerStats

ONE_METRIC = ("context_adherence",)


@pytest.fixture
def judge():
    made = FleetJudge()
    yield made
    made.close()


@pytest.fixture
def telemetry(monkeypatch):
    """What the worker counts."""
    made = InMemoryTelemetry()
    monkeypatch.setattr(providers, "meter_provider", lambda *_: made.meter_provider)
    return made


@pytest.fixture
def run(broker, backend, monkeypatch):
    """Starts workers, each in a thread of its own, and stops them."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", backend.url)
    monkeypatch.setenv("NO_PROXY", "*")
    started = []

    def start(judge, **options):
        asked = {"judge": "openai:judge", "judge_api_key": "key", "judge_base_url": judge.base_url}
        settings, options = Settings(metrics=ONE_METRIC, **asked), WorkerOptions(**{"drain_timeout": 0.0, **options})
        worker = worker_module.Worker(BrokerAccess(url=broker.url), settings, options=options, stream=STREAM)
        worker.loop = loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_until_complete, args=(worker.run(),))
        worker.thread = thread
        thread.start()
        started.append((worker, loop, thread))
        return worker

    def stop_all():
        for worker, loop, _ in started:
            loop.call_soon_threadsafe(worker.stop)

    start.stop_all = stop_all
    yield start
    stop_all()
    for _, loop, thread in started:
        thread.join(60)
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def test_deliveries_are_counted_by_their_end_and_reason_in_statistics_and_metrics(run, broker, judge, telemetry):
    judge.hold_all()
    broker.make_stream(name=STREAM.name, subjects=[STREAM.records], retention="workqueue")
    broker.publish(STREAM.records, b"no record")
    publish(broker, a_record(1), a_record(2))
    worker = run(judge)
    until(lambda: worker.stats().dead_lettered and len(judge.asked) == 2, what="an end", patience=60)
    assert worker.stats() == WorkerStats(ready=True, in_flight=2, dead_lettered={"invalid_record": 1})
    assert telemetry.measurements()["ragspan.fleet.in_flight"] == [({}, 2)]
    judge.release()
    until(lambda: worker.stats().acknowledged == 2, what="the other ends", patience=60)

    assert sorted(telemetry.measurements()["ragspan.fleet.deliveries"], key=str) == [
        ({"ragspan.result": "acknowledged"}, 2),
        ({"ragspan.result": "dead_lettered", "ragspan.reason": "invalid_record"}, 1),
    ]


@pytest.mark.parametrize(("drain_timeout", "stops"), [(0.0, 1), (600.0, 2)])
def test_what_a_worker_has_in_hand_when_it_is_stopped_another_scores_at_once(
    run, broker, backend, judge, drain_timeout, stops
):
    judge.hold_all()
    publish(broker, a_record(1))
    worker = run(judge, drain_timeout=drain_timeout)
    until(lambda: judge.asked, what="a question")
    for _ in range(stops):
        run.stop_all()
    worker.thread.join(60)

    assert worker.stats() == WorkerStats(nacked={"stopped": 1})
    judge.release()
    other = run(judge)
    until(lambda: other.stats().acknowledged, what="the other worker's score")
    assert [(one.record, one.delivery) for one in backend.answers()] == [("record-1", 2)]


def test_a_record_that_no_delivery_brought_a_score_is_a_dead_letter_with_what_is_known_of_it(
    run, broker, judge, caplog
):
    judge.status = 401
    publish(broker, a_record(1))
    worker = run(judge, max_deliveries=1)
    until(lambda: worker.stats().dead_lettered, what="a dead letter")

    assert worker.stats() == WorkerStats(ready=True, dead_lettered={"judge_outage": 1})
    (letter,) = broker.messages(STREAM.dead_stream)
    assert {name: text for name, text in letter.headers.items() if name.startswith("Ragspan-")} == {
        "Ragspan-Record": "record-1",
        "Ragspan-Reason": "judge_outage",
        "Ragspan-Detail": "1 of 1 metrics failed: AuthenticationError",
        "Ragspan-Deliveries": "1",
    }
    assert caplog.messages[-1] == "a record was dead_lettered: judge_outage"


def test_a_record_that_cannot_be_put_aside_stays_in_the_stream_of_records(run, broker, judge, caplog):
    for name, subject, limit in ((STREAM.name, STREAM.records, -1), (STREAM.dead_stream, STREAM.dead_letters, 10)):
        broker.make_stream(name=name, subjects=[subject], max_msg_size=limit)
    broker.publish(STREAM.records, b"no record")
    worker = run(judge)
    until(lambda: worker.stats().nacked, what="an end")

    assert (worker.stats(), in_work(broker)) == (WorkerStats(ready=True, nacked={"not_dead_lettered": 1}), 1)
    why = "message size exceeds maximum allowed"
    assert caplog.messages == [f"a record could not be put aside: {why}", "a record was nacked: not_dead_lettered"]


def test_the_broker_hears_of_a_record_in_work_and_no_more_of_one_that_is_done(run, broker, judge, caplog):
    judge.hold_all()
    publish(broker, a_record(1))

    async def listen(client):
        said, heard = [], await client.subscribe("$JS.ACK.>")
        run(judge, ack_wait=1.0)
        while not said or said[-1] == b"+WPI":
            said.append((await heard.next_msg(PATIENCE)).data)
            if len(said) == 4:  # more than a second has passed
                judge.release()
        return said

    said = broker.ask(listen)
    assert said == [b"+WPI"] * max(4, len(said) - 1) + [b"+ACK"]
    assert caplog.messages == [], "requests for records have run out, as usual"


def test_a_record_comes_again_later_each_time_up_to_ten_minutes():
    assert [a_delivery(number=number).delay for number in (1, 2, 3, 4, 99)] == [5, 30, 120, 600, 600]
