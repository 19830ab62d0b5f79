from __future__ import annotations

import pytest

from ragspan.telemetry import OTelEmitter
from ragspan.telemetry.providers import flush_as_well


class Flushes:
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

    get_meter = get_logger = get_tracer


@pytest.fixture
def flush():
    def flush(*providers, timeout=10):
        names = ("tracer_provider", "meter_provider", "logger_provider")
        return OTelEmitter(**dict(zip(names, providers, strict=True))).flush(timeout)

    return flush


def test_all_providers_are_flushed_and_what_asked_to_be_flushed_as_well(flush):
    providers, exporter = [Flushes(), Flushes(result=None), Flushes()], Flushes()
    flush_as_well(exporter)

    assert flush(*providers, timeout=float("inf"))
    assert [one.times for one in (*providers, exporter)] == [1, 1, 1, 1]


def test_a_provider_that_could_not_send_keeps_no_other_from_flushing(flush):
    providers = [Flushes(result=False), Flushes(), Flushes()]

    assert not flush(*providers)
    assert [provider.times for provider in providers] == [1, 1, 1]


def test_an_exception_is_a_flush_that_failed_and_logs_no_text(flush, caplog):
    assert not flush(Flushes(ConnectionError("SECRET")), Flushes(), Flushes())

    assert [entry.getMessage() for entry in caplog.records] == ["flushing Flushes failed: ConnectionError"]
