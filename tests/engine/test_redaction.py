"""What an engine with `redact` shows of a record, to judges, emitters and the log."""

from __future__ import annotations

import io
import logging
import os
import threading

import pytest
from fakes import FakeJudge, InMemoryTelemetry
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

from ragspan.metrics import Faithfulness
from ragspan.outcomes import MetricFailure
from ragspan.records import Generation, Retrieval, RetrievedContext
from ragspan.telemetry import OTelEmitter
from ragspan.telemetry.console import ConsoleEmitter

SECRET = "anna@example.org"


def mask(text):
    return text.replace(SECRET, "[e-mail]")


def fail(text):
    raise ValueError(text)


def a_leaky_record(fakes, **changes):
    found = RetrievedContext(
        text=f"Anna's address is {SECRET}.", source=f"letters/{SECRET}", metadata={"author": SECRET}
    )
    return fakes.a_record(
        question=f"Where do we write to {SECRET}?",
        contexts=[found],
        response=f"To {SECRET}. The moon is of cheese, {SECRET} says.",
        user_id=SECRET,
        tags=(SECRET,),
        metadata={"mail": [SECRET]},
        retrievals=(Retrieval(name="letters", query=f"mail of {SECRET}", started_ns=1, ended_ns=2, contexts=(found,)),),
        generations=(Generation(model="small", provider=None, started_ns=2, ended_ns=3),),
        ended_ns=4,
        **changes,
    )


@pytest.fixture(autouse=True)
def no_other_settings(monkeypatch):
    for name in [name for name in os.environ if name.startswith("RAGSPAN_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize("judging", ["thread", "helper"])
def test_spans_events_and_the_console_show_no_secret_though_content_is_on(fakes, make_engine, judging):
    telemetry, printed, events = InMemoryTelemetry(), io.StringIO(), InMemoryLogRecordExporter()
    loggers = LoggerProvider(shutdown_on_exit=False)
    loggers.add_log_record_processor(SimpleLogRecordProcessor(events))
    emitters = [
        OTelEmitter(
            capture_content=True,
            tracer_provider=telemetry.tracer_provider,
            meter_provider=telemetry.meter_provider,
            logger_provider=loggers,
        ),
        ConsoleEmitter(capture_content=True, explanations=True, file=printed),
    ]
    engine = make_engine(
        "faithfulness", "completeness", emitters=emitters, redact=lambda text: mask(text), judging=judging
    )

    fakes.score(engine, a_leaky_record(fakes))

    logs = [event.log_record for event in events.get_finished_logs()]
    spans = [span.to_json() for span in telemetry.spans()]
    shown = {
        "spans": spans,
        "events": [(log.body, dict(log.attributes)) for log in logs],
        "console": printed.getvalue(),
    }
    assert len(spans) >= 3
    for channel, texts in shown.items():
        assert SECRET not in repr(texts), channel
        assert "[e-mail]" in repr(texts), channel
    assert engine.stats().dropped == {}


def test_explanations_are_redacted_too_and_left_out_where_that_fails(fakes, make_engine):
    emitter = fakes.ListEmitter()
    judge = FakeJudge(supported=[False], explanations={"claim": f"as {SECRET} wrote"})
    texts = []

    def fail_for_explanations(text):
        texts.append(text)
        if "wrote" in text:
            raise LookupError(SECRET)
        return text

    for redact in (mask, fail_for_explanations):
        engine = make_engine(Faithfulness(judge=judge), emitters=[emitter], redact=redact)
        fakes.score(engine)

    masked, without = (scored.outcomes["faithfulness"] for scored in emitter.scored)
    assert "as [e-mail] wrote" in repr(masked)
    assert SECRET not in repr(emitter.scored)
    assert (without.value, without.explanation, without.evidence) == (masked.value, None, ())


def test_failures_quote_no_secret_either(fakes, score_one):
    scored = score_one(fakes.CallingMetric(lambda _: fail(SECRET)), redact=mask)

    assert scored.outcomes["calling"] == MetricFailure(error_type="ValueError", message="[e-mail]")


@pytest.mark.parametrize(
    ("redact", "timeout", "why"),
    [(fail, 20.0, "ValueError"), (lambda _: threading.Event().wait(2), 0.2, "it took longer than 0.2 s")],
    ids=["raises", "hangs"],
)
def test_a_record_for_which_it_fails_is_dropped_counted_and_never_sent(
    fakes, make_engine, caplog, redact, timeout, why
):
    emitter = fakes.ListEmitter()
    engine = make_engine(fakes.ConstantMetric(), emitters=[emitter], redact=redact, metric_timeout=timeout)
    caplog.set_level(logging.WARNING, logger="ragspan")

    for _ in range(3):
        engine.submit(a_leaky_record(fakes))

    assert engine.flush(fakes.PATIENCE)
    stats = engine.stats()
    assert (stats.submitted, stats.finished, stats.dropped) == (3, 0, {"redaction_failed": 3})
    assert emitter.journal == ["flush"]
    assert [line for line in caplog.messages if "redact failed" in line] == [
        f"a record is dropped, because redact failed: {why}",
    ]
    assert SECRET not in caplog.text
