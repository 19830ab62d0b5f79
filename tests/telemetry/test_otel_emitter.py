from __future__ import annotations

import os
import threading
from dataclasses import replace

import pytest
from forked import in_child
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.trace import SpanProcessor

from ragspan.engine import ScoringEngine
from ragspan.exceptions import ConfigurationError
from ragspan.outcomes import Score, ScoredRecord
from ragspan.process import in_use
from ragspan.telemetry import OTelEmitter
from ragspan.telemetry.providers import flush_as_well

SCORES = {"m": Score(value=0.5)}
NO_SPAN = (
    "There is no span to write scores on, and no judge is paid for any: no TracerProvider is set up. Call "
    "ragspan.configure() at the start of the program, or set up OpenTelemetry; RAGSPAN_EMITTERS=console prints scores."
)
EARLY = "the TracerProvider was shut down before the scores of all answers were there: shut ragspan down first, or call flush()"
OVER = "The TracerProvider was shut down: answers have no spans any more, and no judge is paid for them."
TWICE = (
    "Another instrumentation already traces these answers, so each appears twice. RAGSPAN_SPANS=scores, or "
    "OTelEmitter(spans='scores'), adds the scores to the existing spans."
)


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("score_wait", -1, "a number of seconds, 0 or more"),
        ("score_wait", float("nan"), "a number of seconds, 0 or more"),
        ("spans", "all", "one of answer, scores"),
        ("capture_content", "false", "True, False, 'spans' or 'events'"),
        ("explanations", "no", "True or False"),
        ("dimensions", "release", "at most five names of letters, digits and underscores, such as 'release,tenant'"),
        *((f"{kind}_provider", "x", f"a provider, with a method get_{kind}, or None") for kind in ("tracer", "meter")),
    ],
)
def test_a_wrong_argument_is_named_with_its_value(option, value, allowed):
    with pytest.raises(ConfigurationError) as caught:
        OTelEmitter(**{option: value})

    assert str(caught.value) == f"{option} is {value!r}, but should be {allowed}"


class TestGlobalProviders:
    @pytest.fixture
    def emitter(self, no_global_providers):
        return OTelEmitter(capture_content=False)

    def test_providers_that_are_set_later_are_followed(
        self, emitter, set_global_providers, telemetry, make_record, answer
    ):
        assert answer(emitter, make_record(), SCORES) is None
        set_global_providers(telemetry)
        answer(emitter, make_record(), SCORES)

        assert telemetry.span("invoke_workflow rivers").attributes["ragspan.score.m"] == 0.5
        assert len(telemetry.events) == 1
        assert telemetry.points("ragspan.score")[0].count == 1

    @pytest.mark.parametrize("with_parent", [True, False])
    def test_without_a_tracer_provider_there_is_no_span(self, emitter, make_record, parent, with_parent):
        assert emitter.start(make_record(parent=parent if with_parent else None)).span is None

    def test_the_lack_is_logged_once_not_once_a_record(self, emitter, make_record, answer, caplog):
        for number in range(10):
            answer(emitter, make_record(record_id=str(number)), SCORES)

        assert caplog.messages == [NO_SPAN]


class TestShutdown:
    def test_open_spans_end_bare_with_their_own_end_time(self, telemetry, make_record):
        emitter, record = telemetry.emitter(), make_record()
        emitter.start(record)
        emitter.shutdown(timeout=10)

        span, search = telemetry.span("invoke_workflow rivers"), telemetry.span("retrieval vector_store")
        assert span.end_time == record.ended_ns
        assert search.end_time == record.retrievals[0].ended_ns
        assert not [key for key in span.attributes if key.startswith("ragspan.score")]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_does_not_end_the_spans_of_its_parent(telemetry, make_record):
    emitter, record = telemetry.emitter(), make_record()
    handle = emitter.start(record)

    assert in_child(lambda: emitter.shutdown(timeout=1) or len(telemetry.spans)) == 0
    handle.finish(ScoredRecord(record=record, outcomes=SCORES, span=handle.span))
    assert telemetry.span("invoke_workflow rivers").context.span_id == handle.span.span_id


class Flushes(NoOpMeterProvider):
    """A provider that flushes at once, and counts."""

    def __init__(self, result=True):
        self.result = result
        self.times = 0

    def force_flush(self, timeout_millis, **_how):
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
    assert caplog.messages == logged
    emitter.shutdown(30)
    assert [one.times for one in (tracers, meters, loggers, exporter)] == [2, 2, 2, 2]


class Waits:
    """A metric whose scores come when they may."""

    name = "waits"

    def __init__(self):
        self.is_asked, self.may = threading.Event(), threading.Event()

    def score(self, record):
        self.is_asked.set()
        return Score(value=float(self.may.wait(60)))


@pytest.mark.parametrize(("exit_timeout", "scores"), [(60, [1.0]), (0.05, [])])
def test_a_provider_that_ends_waits_for_the_scores_of_its_spans(telemetry, make_record, caplog, exit_timeout, scores):
    metric, provider = Waits(), telemetry.tracer_provider
    with ScoringEngine(metrics=[metric], emitters=[telemetry.emitter()], exit_timeout=exit_timeout) as engine:
        engine.submit(make_record())
        assert metric.is_asked.wait(60)
        if scores:
            metric.may.set()
        provider.shutdown()
        metric.may.set()
        engine.submit(make_record())
        assert engine.flush(60)

    ended = [span for span in telemetry.spans if span.name.startswith("invoke")]
    assert [span.attributes["ragspan.score.waits"] for span in ended] == scores
    said = [one.getMessage() for one in caplog.records if one.name == "ragspan"]
    assert [line for line in said if "TracerProvider" in line] == [*([] if scores else [EARLY]), OVER]


class Refuses(SpanProcessor):
    def on_start(self, span, parent_context=None):
        if span.name.startswith("retrieval"):
            raise ValueError("SECRET")


def test_what_a_processor_of_the_applications_raises_costs_the_steps_and_not_the_answer(
    telemetry, make_record, answer, caplog
):
    telemetry.tracer_provider.add_span_processor(Refuses())
    answer(telemetry.emitter(), make_record(), SCORES)

    assert [span.name for span in telemetry.spans] == ["invoke_workflow rivers"]
    assert caplog.messages == ["the spans of an answer's steps could not be made: ValueError"]


@pytest.mark.parametrize(("spans", "times"), [("answer", 1), ("scores", 0)])
def test_answers_that_are_traced_already_are_said_once(
    monkeypatch, telemetry, make_record, search, parent, caplog, spans, times
):
    monkeypatch.setattr(in_use, "said", set())
    for _ in range(2):
        telemetry.emitter(spans=spans).start(make_record(retrievals=(replace(search, span=parent),)))

    assert caplog.messages == [TWICE] * times
