from __future__ import annotations

import pytest
from opentelemetry._logs import NoOpLoggerProvider

from ragspan.telemetry.providers import Providers


def test_each_thing_is_made_once_as_long_as_its_provider_stays(telemetry):
    providers = Providers(telemetry.tracer_provider, telemetry.meter_provider, telemetry.logger_provider)

    assert providers.tracer() is providers.tracer()
    assert providers.score_histogram() is providers.score_histogram()
    assert providers.event_logger() is providers.event_logger()


@pytest.mark.usefixtures("no_global_providers")
class TestWithoutAnSdk:
    @pytest.mark.parametrize("provider", [None, NoOpLoggerProvider()])
    def test_there_is_no_event_logger_so_that_no_event_is_made_for_nobody(self, provider):
        assert Providers(None, None, provider).event_logger() is None

    def test_there_is_nothing_to_flush(self):
        assert Providers(None, None, None).flushable() == []


def test_what_has_a_flush_is_flushed(telemetry):
    providers = Providers(telemetry.tracer_provider, None, telemetry.logger_provider)

    assert telemetry.tracer_provider in providers.flushable()
    assert telemetry.logger_provider in providers.flushable()
