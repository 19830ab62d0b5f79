"""A worker in the test's own process, where a test can look into it."""

from __future__ import annotations

import asyncio
import threading

import pytest
from fakes import InMemoryTelemetry
from fleet_records import a_record
from servers.judge import FleetJudge
from waiting import until
from worker_process import STREAM, publish

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
