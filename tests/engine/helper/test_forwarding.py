"""Engines with `export="helper"`: a real helper process, which sends to a real endpoint on this machine."""

from __future__ import annotations

import asyncio
import os
import signal
import string
import sys
import threading
import time

import pytest
from doubtful import finds_what_is_nowhere, some_answers
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from shared_judging import REQUESTS_AN_ANSWER
from waiting import PATIENCE

from ragspan.engine import Budget, forwarding
from ragspan.engine.helper import client
from ragspan.engine.threads import Deadline
from ragspan.exceptions import ConfigurationError
from ragspan.judges import OpenAIJudge
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.records import SpanAnchor
from ragspan.telemetry import OTelEmitter
from ragspan.testing import FakeJudge

SECRET = "anna@example.org"
PARENT = SpanAnchor(trace_id=0xA1, span_id=0xB2, trace_state="vendor=value", is_remote=True)


@pytest.fixture(autouse=True)
def environment(monkeypatch, otlp_listener):
    """Names the endpoint as an operator does."""
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", otlp_listener.url)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")


@pytest.fixture
def exporting(make_engine):
    """An engine whose helper exports."""
    return lambda *metrics, emitters=None, **options: make_engine(
        *metrics,
        emitters=[OTelEmitter(explanations=True)] if emitters is None else emitters,
        export="helper",
        **options,
    )


@pytest.fixture
def wait_until_out(fakes):
    """Waits until everything is scored, whether or not it was exported."""

    def wait(engine):
        assert engine._queue.wait_until_out(Deadline(fakes.PATIENCE))

    return wait


def span_named(listener, name):
    [span] = [span for span in listener.spans if span.name == name]
    return span


def test_the_helper_scores_and_exports(fakes, exporting, obedient, otlp_listener, helper_of):
    engine = exporting(obedient.AtOnce())
    fakes.score(engine, fakes.a_record(name="rivers", parent=PARENT))

    span = span_named(otlp_listener, "invoke_workflow rivers")
    assert span.attributes["ragspan.score.at_once"] == 1.0
    assert span.attributes["ragspan.explanation.at_once"] == str(helper_of(engine))
    assert (int(span.trace_id, 16), int(span.parent_id, 16), span.trace_state) == (0xA1, 0xB2, "vendor=value")
    assert span.resource["service.name"] == "shop"
    assert engine.stats().finished == 1


def test_who_awaits_a_record_gets_what_the_helper_made_of_it(fakes, exporting, obedient, otlp_listener, helper_of):
    engine = exporting(obedient.AtOnce(), sample_rate=0.0)
    record = fakes.a_record(parent=PARENT)

    scored = asyncio.run(engine.score(record, sample=False))

    assert scored.record is record
    assert scored.outcomes["at_once"].explanation == str(helper_of(engine))
    assert scored.span.trace_id == PARENT.trace_id
    assert engine.stats().finished == 1


def test_the_spans_are_those_of_the_application(fakes, exporting, obedient, otlp_listener, monkeypatch):
    resource = Resource.create({"service.name": "from code", "deployment.environment.name": "test"})
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", TracerProvider(resource=resource, shutdown_on_exit=False))
    engine = exporting(obedient.AtOnce())
    fakes.score(engine)

    resource_there = span_named(otlp_listener, "invoke_workflow answer").resource
    assert resource_there["service.name"] == "from code"
    assert resource_there["deployment.environment.name"] == "test"


def test_exporters_and_batches_are_those_of_the_environment(fakes, exporting, obedient, otlp_listener, monkeypatch):
    for name, value in {"METRICS_EXPORTER": "otlp", "LOGS_EXPORTER": "otlp", "BSP_MAX_EXPORT_BATCH_SIZE": "1"}.items():
        monkeypatch.setenv(f"OTEL_{name}", value)
    engine = exporting(obedient.AtOnce())
    fakes.score(engine, times=3)

    assert set(otlp_listener.requests) == {"/v1/traces", "/v1/metrics", "/v1/logs"}
    assert list(otlp_listener.requests).count("/v1/traces") == len(otlp_listener.spans) == 3


@pytest.mark.parametrize("trouble", ["hanging", "down"])
def test_a_flush_says_the_truth_in_time_whatever_the_endpoint_does(
    fakes, exporting, obedient, otlp_listener, monkeypatch, wait_until_out, trouble
):
    if trouble == "hanging":
        otlp_listener.hangs()
    else:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    engine = exporting(obedient.AtOnce())
    engine.submit(fakes.a_record())
    wait_until_out(engine)

    began = time.monotonic()
    assert not engine.flush(0.5)
    assert time.monotonic() - began < 0.5 + fakes.GRACE
    engine.shutdown(0.0)


def test_what_the_helper_logs_is_in_the_log_of_the_application(fakes, exporting, obedient, otlp_listener, caplog):
    otlp_listener.answers(400)
    engine = exporting(obedient.AtOnce())
    engine.submit(fakes.a_record())
    engine.flush(fakes.PATIENCE)

    assert any(
        entry.name.startswith("opentelemetry") and "400" in entry.getMessage() and entry.process == os.getpid()
        for entry in caplog.records
    )


def test_what_fails_there_is_counted_here(fakes, exporting, obedient):
    engine = exporting(obedient.Obeying(), emitters=[obedient.Raising()])
    fakes.score(engine, fakes.a_record(question="raise_anything"))

    assert engine.stats().errors == {"metric": 1, "emitter": 1}


def test_a_helper_that_is_killed_in_mid_work_loses_no_record(
    fakes, assert_conserved, exporting, obedient, otlp_listener, blockade, helper_of
):
    engine = exporting(obedient.Obeying(), concurrency=8)
    # As many are held up as are in work at a time: none has been scored, and waits for its export, when the helper dies.
    for number, question in enumerate([*[blockade.question] * 8, *["tell_process"] * 13]):
        engine.submit(fakes.a_record(question=question, name=str(number)))
    killed = blockade.wait_until_started()
    os.kill(killed, signal.SIGKILL)
    blockade.let_go()
    engine.flush(fakes.PATIENCE)

    stats = assert_conserved(engine)
    assert (stats.finished, stats.dropped) == (21, {})
    assert {span.name for span in otlp_listener.spans} == {f"invoke_workflow {number}" for number in range(21)}


def test_a_flush_does_not_hide_that_a_helper_died_which_may_have_held_spans(
    fakes, exporting, obedient, otlp_listener, helper_of, wait_until_out
):
    otlp_listener.hangs()
    engine = exporting(obedient.AtOnce())
    engine.submit(fakes.a_record())
    wait_until_out(engine)
    os.kill(helper_of(engine), signal.SIGKILL)
    otlp_listener.answers(200)
    engine.submit(fakes.a_record())
    wait_until_out(engine)

    assert [engine.flush(fakes.PATIENCE) for _ in range(2)] == [False, True]
    assert engine.stats().finished == 2


@pytest.fixture
def no_interpreter(monkeypatch):
    """No helper starts until the context is left."""
    monkeypatch.setattr(client, "_FIRST_PAUSE", 0.05)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "")
        yield patch


def test_records_wait_for_a_helper(fakes, assert_conserved, exporting, obedient, otlp_listener, no_interpreter):
    engine = exporting(obedient.AtOnce())
    for _ in range(20):
        engine.submit(fakes.a_record())
    assert not engine.flush(0.5)
    assert assert_conserved(engine).finished == 0

    no_interpreter.undo()
    assert engine.flush(fakes.PATIENCE)
    assert len(otlp_listener.spans) == engine.stats().finished == 20


def test_records_that_wait_for_a_helper_in_vain_are_counted_as_dropped(
    fakes, assert_conserved, exporting, obedient, no_interpreter, monkeypatch, caplog
):
    monkeypatch.setattr(forwarding, "_MARGIN", 0.0)
    engine = exporting(obedient.AtOnce(), metric_timeout=0.2)
    fakes.score(engine)

    assert assert_conserved(engine).dropped == {"worker_error": 1}
    assert "there is no helper process, its work waits" in caplog.text


@pytest.mark.slow
def test_a_record_that_kills_its_helper_is_dropped_and_those_around_it_are_scored(
    fakes, assert_conserved, exporting, obedient
):
    engine = exporting(obedient.Obeying(), concurrency=4)
    for question in [*["tell_process"] * 6, "crash", *["tell_process"] * 6]:
        engine.submit(fakes.a_record(question=question))
    engine.flush(fakes.PATIENCE)

    stats = assert_conserved(engine)
    assert (stats.finished, stats.dropped) == (12, {"worker_error": 1})


def test_a_shutdown_sends_what_is_left_and_ends_the_helper(fakes, exporting, obedient, otlp_listener, helper_of):
    engine = exporting(obedient.AtOnce())
    fakes.score(engine)
    pid = helper_of(engine)
    for _ in range(10):
        engine.submit(fakes.a_record())
    report = engine.shutdown(fakes.PATIENCE)

    assert (engine.stats().finished, report.abandoned) == (11, 0)
    assert len(otlp_listener.spans) == 11
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert engine.shutdown(fakes.PATIENCE) is report


def test_a_shutdown_in_mid_work_takes_no_longer_than_it_may(
    fakes, assert_conserved, exporting, obedient, blockade, helper_of
):
    engine = exporting(obedient.Obeying())
    engine.submit(fakes.a_record(question=blockade.question))
    blockade.wait_until_started()

    report = engine.shutdown(0.3)
    assert report.abandoned == 1
    assert report.seconds < 0.3 + fakes.GRACE
    assert assert_conserved(engine).dropped == {"shutdown": 1}


def test_a_helper_process_has_to_know_where_to_export_to(exporting, obedient, monkeypatch):
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT")
    with pytest.raises(ConfigurationError, match="no exporter is configured"):
        exporting(obedient.AtOnce())


def of_the_main_module(kind):
    """As if it was defined in the program that is run."""
    import __main__

    made = type(kind.__name__, (kind,), {"__module__": "__main__"})
    setattr(__main__, kind.__name__, made)
    return made


class Fallback:
    name = "fallback"

    def __init__(self, baggage=None):
        self.baggage = baggage

    async def verify_claims(self, record, claims):
        return []


PAID = ContextAdherence(OpenAIJudge("local", base_url="http://127.0.0.1:1/v1", api_key="sk-test"))
PROVIDER = TracerProvider(shutdown_on_exit=False)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda there: {"metric": there.Obeying(there.ObedientJudge(lambda: None))}, r"metrics\[0\] .*lambda"),
        (lambda there: {"metric": of_the_main_module(there.AtOnce)()}, r"metrics\[0\] .*AtOnce needs the main module"),
        (
            lambda there: {"metric": there.Obeying(of_the_main_module(there.ObedientJudge)())},
            r"metrics\[0\] .*Obeying needs the main module",
        ),
        (lambda _: {"emitters": [OTelEmitter(tracer_provider=PROVIDER)]}, r"emitters\[0\] .*belong to this process"),
        (
            lambda _: {"budget": Budget(requests_per_minute=1, fallback=Fallback(threading.Lock()))},
            r"budget\.fallback .*TypeError: .*lock",
        ),
    ],
    ids=["lambda", "metric of main", "judge of main", "emitter", "fallback"],
)
def test_what_goes_to_the_helper_has_to_travel(exporting, obedient, make, reason):
    options = make(obedient)
    with pytest.raises(ConfigurationError, match=reason.replace(" ", " cannot go ", 1)):
        exporting(options.pop("metric", PAID), **options)


def test_what_the_helper_has_in_work_is_exported_when_the_application_is_killed(
    start, watch, blockade, otlp_listener, obedient
):
    """As the servers do that end themselves by a signal, and run no exit hook."""
    application = start(
        f"""
        from obedient import Gated
        from ragspan.telemetry import OTelEmitter
        engine = ScoringEngine(metrics=[Gated({str(blockade.folder)!r})], emitters=[OTelEmitter()], export="helper")
        ask(engine, "any")
        threading.Event().wait()
        """
    )
    helper = watch(blockade.wait_until_started())
    os.kill(application.pid, signal.SIGKILL)
    application.process.wait()
    blockade.let_go()

    assert helper.ends()
    assert span_named(otlp_listener, "invoke_workflow answer").attributes["ragspan.score.gated"] == 0.5


@pytest.mark.parametrize(
    ("redact", "explanation"),
    [(lambda text: text.replace(SECRET, "[E-Mail]"), None), (string.capwords, "1 Of 1 Claims Unsupported")],
    ids=["one that does not pickle", "one that does"],
)
def test_records_are_redacted_here_and_explanations_there_or_not_at_all(
    fakes, exporting, otlp_listener, redact, explanation
):
    emitter = OTelEmitter(capture_content=True, explanations=True)
    engine = exporting(Faithfulness(judge=FakeJudge(supported=[False])), emitters=[emitter], redact=redact)
    fakes.score(engine, fakes.a_record(question=f"who is {SECRET}"))

    attributes = span_named(otlp_listener, "invoke_workflow answer").attributes
    assert attributes["input.value"] == redact(f"who is {SECRET}")
    assert attributes["ragspan.score.faithfulness"] == 0.0
    assert (explanation or "") in attributes.get("ragspan.explanation.faithfulness", "")
    assert ("ragspan.explanation.faithfulness" in attributes) is (explanation is not None)
    assert engine.stats().dropped == {}


@pytest.mark.slow
def test_the_helper_asks_a_judge_about_its_share_also_after_it_was_started_anew(
    exporting, fake_openai, otlp_listener, monkeypatch
):
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "otlp")
    fake_openai.answer = finds_what_is_nowhere(fake_openai)
    judge = OpenAIJudge("m", base_url=fake_openai.base_url, api_key="-")
    answers = some_answers(1000, chances=(80, 10, 4, 3, 2, 1))
    for part in (answers[:400], answers[400:]):
        engine = exporting(
            *(metric(judge) for metric in (ContextAdherence, Completeness, ContextUtilization, Faithfulness)),
            judge_share="0.2:0.1",
        )
        for answer in part:
            engine.submit(answer)
        assert engine.flush(PATIENCE)
        assert engine.shutdown(PATIENCE).abandoned == 0

    scored = [span for span in otlp_listener.spans if "ragspan.score.faithfulness" in span.attributes]
    asked = [span for span in scored if "ragspan.asked" in span.attributes]
    assert len(scored) == len(answers)
    assert len(fake_openai.requests) == REQUESTS_AN_ANSWER * len(asked)
    assert len(asked) == pytest.approx(len(answers) / 5, rel=0.05)
    rate = otlp_listener.labels.rate_of("context_adherence")
    assert rate.answers == len(answers)
    assert rate.lower <= sum(not one.record_id.endswith("-0") for one in answers) / len(answers) <= rate.upper
