from __future__ import annotations

import pytest
from opentelemetry.trace import INVALID_SPAN

from ragspan.telemetry.open_spans import OpenSpans


@pytest.fixture
def spans():
    return OpenSpans()


def test_a_span_is_given_out_once(spans, make_record):
    assert spans.add(make_record(record_id="r"), INVALID_SPAN)

    assert spans.take("r") is INVALID_SPAN
    assert spans.take("r") is None


def test_closing_gives_out_what_is_left_and_keeps_nothing_from_then_on(spans, make_record):
    record = make_record()
    spans.add(record, INVALID_SPAN)

    assert spans.close() == [(record, INVALID_SPAN)]
    assert not spans.add(record, INVALID_SPAN)
    assert len(spans) == 0


def test_a_span_that_is_opened_while_the_emitter_shuts_down_is_ended(telemetry, make_record):
    emitter = telemetry.emitter()

    class ShutsDownMeanwhile:
        def on_start(self, span, parent_context=None):
            emitter.shutdown(timeout=10)

        def on_end(self, span): ...
        def _on_ending(self, span): ...

        def force_flush(self, timeout_millis):
            return True

    telemetry.tracer_provider.add_span_processor(ShutsDownMeanwhile())
    emitter.open(make_record())

    assert telemetry.span("invoke_workflow rivers")
