from __future__ import annotations

import pytest
from opentelemetry.metrics import NoOpMeterProvider

from ragspan.telemetry import OTelEmitter
from ragspan.telemetry.providers import flush_as_well


class Flushes(NoOpMeterProvider):
    """A provider that flushes at once, and counts."""

    def __init__(self, result=True):
        self.result = result
        self.times = 0

    def force_flush(self, timeout_millis):
        self.times += 1
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    def get_tracer(self, *args): ...

    get_logger = get_tracer


@pytest.mark.parametrize(
    ("results", "is_flushed", "logged"),
    [
        ((True, None, True), True, []),
        ((False, True, True), False, []),
        ((ConnectionError("SECRET"), True, True), False, ["flushing Flushes failed: ConnectionError"]),
    ],
)
def test_all_providers_are_flushed_and_what_asked_to_be_flushed_as_well(results, is_flushed, logged, caplog):
    tracers, meters, loggers, exporter = *map(Flushes, results), Flushes()
    flush_as_well(exporter)
    emitter = OTelEmitter(tracer_provider=tracers, meter_provider=meters, logger_provider=loggers)

    assert emitter.flush(float("inf")) is is_flushed
    assert [one.times for one in (tracers, meters, loggers, exporter)] == [1, 1, 1, 1]
    assert [entry.getMessage() for entry in caplog.records] == logged
