"""A fleet for tests: a real broker, real workers, and a judge and a tracing backend in the test's process."""

from __future__ import annotations

import os
import time

from fleet_law import records_that_ended
from fleet_processes import PATIENCE, POLL, FleetWorker
from fleet_records import a_record
from servers.judge import FleetJudge
from servers.otlp import FleetBackend
from worker_process import HEALTH, STREAM, is_empty, publish

_NOT_INHERITED = ("NATS_", "OPENAI_", "OTEL_", "RAGSPAN_")


class Fleet:
    """The parts of a fleet, for one test.

    Args:
        broker: that workers are to use.
        folder: for the processes' logs.
        backend_is_up: whether the tracing backend can be reached from the start.
    """

    def __init__(self, broker, folder, *, backend_is_up=True):
        self.broker = broker
        self.judge = FleetJudge()
        self.backend = FleetBackend(listening=backend_is_up)
        self.workers = []
        self._folder = folder
        self._published = 0

    def worker(self, *arguments, url=None, ready=True, metrics="context_adherence", environment=None):
        """Start a worker.

        Args:
            arguments: further ones of the command.
            url: of the broker, where that is not the fleet's own.
            ready: whether to wait until it can take records.
            metrics: that it computes; one takes one request to the judge.
            environment: further variables.
        """
        name = f"worker-{len(self.workers) + 1}"
        given = {
            "NO_PROXY": "*",
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.backend.url,
            "OTEL_RESOURCE_ATTRIBUTES": f"service.instance.id={name}",
            "RAGSPAN_JUDGE": "openai:judge",
            "RAGSPAN_JUDGE_API_KEY": name,
            "RAGSPAN_JUDGE_BASE_URL": self.judge.base_url,
        }
        worker = FleetWorker(
            name,
            arguments=["--broker", url or self.broker.url, *HEALTH, "--metrics", metrics, *map(str, arguments)],
            environment={**_inherited(), **given, **(environment or {})},
            log=self._folder / f"{name}.log",
        )
        self.workers.append(worker)
        if ready:
            self.until(lambda: worker.is_ready, what=f"{name} to be ready")
        return worker

    def start(self, number, *arguments, **options):
        """Start so many workers at the same time, and wait until all are ready."""
        started = [self.worker(*arguments, ready=False, **options) for _ in range(number)]
        self.until(lambda: all(worker.is_ready for worker in started), what=f"{number} workers to be ready")
        return started

    def publish(self, number=1):
        """Publish so many records; their ids."""
        records = [a_record(self._published + place) for place in range(number)]
        self._published += number
        publish(self.broker, *records)
        return [record.record_id for record in records]

    def put(self, payload, headers=None):
        """Put a message of any kind among the records; the stream has to be there."""
        self.broker.publish(STREAM.records, payload, headers)

    def until(self, condition, *, what):
        """Wait for the condition; where it takes too long, the logs of all workers are shown."""
        limit = time.monotonic() + PATIENCE
        while not (found := condition()):
            assert time.monotonic() < limit, f"waited {PATIENCE:g} s for {what}\n{self.logs}"
            time.sleep(POLL)
        return found

    def until_empty(self):
        """Wait until no record is left in the stream."""
        self.until(lambda: is_empty(self.broker), what="an empty stream")

    def until_asked(self, record, *, times):
        """Wait until the judge was asked about a record so many times; the worker that did it last."""
        self.until(lambda: len(self.judge.askers(record)) >= times, what=f"a question about {record}")
        name = self.judge.askers(record)[-1]
        return next(worker for worker in self.workers if worker.name == name)

    def pause(self, seconds):
        """Let time pass, where it is time that the test is about."""
        time.sleep(seconds)

    def all_scored(self, records, *, once=False, **allowed):
        """Wait until the stream is empty: all of these are scored, and exported only once if that is asked; how they have ended."""
        self.until_empty()
        ends = self.ends(records, **allowed)
        assert set(ends.scored) == set(records)
        assert not (once and ends.again)
        return ends

    def letters(self):
        """The dead letters."""
        return self.broker.messages(STREAM.dead_stream)

    def ends(self, records, **allowed):
        """What has become of these records, once they have ended; see `fleet_law`."""
        return records_that_ended(
            records,
            stored=self.broker.messages(STREAM.name),
            answers=self.backend.answers(),
            letters=self.letters(),
            **allowed,
        )

    @property
    def logs(self):
        return "\n".join(f"--- {worker.name}\n{worker.log}" for worker in self.workers)

    def close(self):
        """End what runs; no log may hold a traceback or what a user wrote."""
        for worker in self.workers:
            if worker.is_running:
                worker.kill()
        self.judge.close()
        self.backend.close()
        for trace in ("Traceback", "never retrieved", "never awaited", "record-"):
            assert trace not in self.logs, self.logs


def _inherited():
    """This process' environment without settings of what is tested."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
