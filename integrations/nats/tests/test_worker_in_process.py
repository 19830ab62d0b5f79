"""A worker in the test's own process, where a test can look into it."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest
from fleet_records import a_record
from nats.errors import TimeoutError as NoAnswerError
from servers.judge import FleetJudge
from waiting import until
from worker_process import STREAM, is_empty, publish

from ragspan.config import Settings
from ragspan.telemetry import environment
from ragspan.testing import InMemoryTelemetry
from ragspan_nats import worker as worker_module
from ragspan_nats.connection import BrokerClient
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
    monkeypatch.setattr(environment, "meter_provider", lambda *_: made.meter_provider)
    return made


@pytest.fixture
def run(broker, backend, monkeypatch):
    """Starts workers, each in a thread of its own, and stops them."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", backend.url)
    monkeypatch.setenv("NO_PROXY", "*")
    started = []

    def start(**settings):
        settings, options = Settings(metrics=ONE_METRIC, **settings), WorkerOptions(drain_timeout=0.0)
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


def a_large_record():
    """One that is read in a thread."""
    return replace(a_record(1), metadata={"k": "x" * 100_000})


def test_the_loop_turns_while_a_large_message_is_read(run, broker, judge, monkeypatch):
    """Reading is bounded, but not so short that the broker should not hear of us meanwhile."""
    read = worker_module._read
    turns = []

    def read_and_look(text, redact):
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), worker.loop).result(60)
        turns.append(len(text))
        return read(text, redact)

    monkeypatch.setattr(worker_module, "_read", read_and_look)
    worker = run(judge="openai:judge", judge_api_key="key", judge_base_url=judge.base_url)
    publish(broker, a_large_record())

    until(lambda: worker.stats().acknowledged == 1, what="a scored record", patience=60)
    assert len(turns) == 1


def test_deliveries_are_counted_by_their_end_and_reason_in_statistics_and_metrics(run, broker, judge, telemetry):
    judge.hold_all()
    broker.make_stream(name=STREAM.name, subjects=[STREAM.records], retention="workqueue")
    broker.publish(STREAM.records, b"no record")
    publish(broker, a_record(1))
    worker = run(judge="openai:judge", judge_api_key="key", judge_base_url=judge.base_url)
    until(lambda: worker.stats().dead_lettered and judge.asked, what="an end", patience=60)
    assert worker.stats() == WorkerStats(ready=True, in_flight=1, dead_lettered={"invalid_record": 1})
    assert telemetry.measurements()["ragspan.fleet.in_flight"] == [({}, 1)]
    judge.release()
    until(lambda: worker.stats().acknowledged == 1, what="the other end", patience=60)

    assert sorted(telemetry.measurements()["ragspan.fleet.deliveries"], key=str) == [
        ({"ragspan.result": "acknowledged"}, 1),
        ({"ragspan.result": "dead_lettered", "ragspan.reason": "invalid_record"}, 1),
    ]


def test_an_answer_whose_trace_is_not_sampled_costs_no_judge(run, broker, judge, monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    publish(broker, a_record(1))
    worker = run(judge="openai:judge", judge_api_key="key", judge_base_url=judge.base_url)

    until(lambda: worker.stats().acknowledged == 1, what="an end", patience=60)
    assert judge.asked == []


def test_an_acknowledgement_that_gets_lost_is_sent_again(run, broker, judge, backend, monkeypatch):
    request, lost = BrokerClient.request, []

    async def request_lossily(client, subject, payload=b"", **options):
        if payload == b"+ACK" and not lost:
            lost.append(subject)
            raise NoAnswerError
        return await request(client, subject, payload, **options)

    monkeypatch.setattr(BrokerClient, "request", request_lossily)
    publish(broker, a_record(1))
    worker = run(judge="openai:judge", judge_api_key="key", judge_base_url=judge.base_url)

    until(lambda: worker.stats().acknowledged == 1, what="an end", patience=60)
    assert is_empty(broker)
    assert (len(lost), len(judge.asked), len(backend.answers())) == (1, 1, 1)
