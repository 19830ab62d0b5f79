"""Between the engine and its emitters: what is to be scored again is kept from all of them."""

from __future__ import annotations

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from worker_parts import OUTAGE, SpanMaker, a_delivery, a_record, ids_of, scored

from ragspan.judges.base import ClaimVerdict
from ragspan.outcomes import Score
from ragspan.testing import InMemoryTelemetry, RecordingEmitter
from ragspan_nats.worker.delivery import ACKNOWLEDGE

OUTCOMES = {"faithfulness": Score(value=0.5), "completeness": OUTAGE}


class Signals:
    """Spans, events and measurements of a worker's emitter."""

    def __init__(self):
        self._telemetry = InMemoryTelemetry()
        self._log_exporter = InMemoryLogRecordExporter()
        loggers = LoggerProvider(shutdown_on_exit=False)
        loggers.add_log_record_processor(SimpleLogRecordProcessor(self._log_exporter))
        self.maker = SpanMaker(meter_provider=self._telemetry.meter_provider, logger_provider=loggers)

    def events(self):
        return [data.log_record for data in self._log_exporter.get_finished_logs()]

    def measurements(self):
        return self._telemetry.measurements().get("ragspan.score", [])


@pytest.fixture
def signals():
    return Signals()


def test_a_record_that_comes_again_writes_no_span_no_event_and_no_measurement(signals):
    delivery = a_delivery(number=1)

    spans = signals.maker.score(delivery, OUTCOMES)

    assert delivery.verdict.ending == "nak"
    assert (list(spans), signals.events(), signals.measurements()) == ([], [], [])


def test_a_record_that_is_put_aside_writes_nothing_either(signals):
    delivery = a_delivery(number=5)

    spans = signals.maker.score(delivery, {"completeness": OUTAGE})

    assert delivery.verdict.ending == "dead_letter"
    assert (list(spans), signals.events(), signals.measurements()) == ([], [], [])


def test_a_record_that_is_done_with_writes_all_of_them(signals):
    delivery = a_delivery(number=5)

    spans = signals.maker.score(delivery, OUTCOMES)

    assert delivery.verdict is ACKNOWLEDGE
    answer = next(span for span in spans if span.name == "invoke_workflow answer")
    assert answer.attributes["ragspan.score.faithfulness"] == 0.5
    assert answer.attributes["ragspan.error.completeness"] == "APIConnectionError"
    assert [event.attributes["gen_ai.evaluation.name"] for event in signals.events()] == [
        "faithfulness",
        "completeness",
    ]
    assert [value for _, value in signals.measurements()] == [0.5]


def test_events_point_at_the_span_that_is_exported(signals):
    spans = signals.maker.score(a_delivery())

    (event,) = signals.events()
    assert (event.trace_id, event.span_id) == ids_of(spans)["invoke_workflow answer"]
    assert event.attributes["log.record.uid"] == "record-1/faithfulness"


def test_a_record_that_is_nacked_while_it_is_scored_writes_nothing(signals):
    delivery = a_delivery()
    signals.maker.open(delivery)

    signals.maker.abandon(delivery)

    assert (delivery.verdict, delivery.spans, signals.events(), signals.measurements()) == (None, [], [], [])


def test_a_record_that_nobody_waits_for_writes_nothing(signals):
    delivery = a_delivery()

    handle = signals.maker.emitter.start(delivery.record)
    handle.finish(scored(delivery.record))

    assert (handle.span, signals.events(), signals.measurements()) == (None, [], [])


def test_two_messages_that_hold_records_with_the_same_id_are_two_deliveries(signals):
    one, other = (a_delivery(a_record("same")) for _ in range(2))
    anchors = [signals.maker.open(delivery) for delivery in (one, other)]

    kept = signals.maker.emit(one, span=anchors[0])
    withheld = signals.maker.emit(other, {"completeness": OUTAGE}, span=anchors[1])

    assert (one.verdict.ending, other.verdict.ending) == ("ack", "nak")
    assert len(kept) == 3
    assert list(withheld) == []
    assert len(signals.events()) == 1


def test_spans_that_cannot_be_made_leave_no_verdict(signals):
    """Whoever comes last sees by that that the record has to be scored again."""
    delivery = a_delivery()
    span = signals.maker.open(delivery)

    with pytest.raises(AttributeError):
        signals.maker.emit(delivery, {"faithfulness": "no outcome at all"}, span=span)

    assert delivery.verdict is None


def others_get(*others, outcomes=OUTCOMES, number=5):
    """What the last of them gets of a delivery."""
    SpanMaker(others=others).score(a_delivery(number=number), outcomes)
    return others[-1].scored


def test_another_emitter_gets_what_is_exported():
    (got,) = others_get(RecordingEmitter())

    assert got.outcomes == OUTCOMES


def test_another_emitter_gets_nothing_of_what_is_withheld():
    assert others_get(RecordingEmitter(), number=1) == []
    assert others_get(RecordingEmitter(), outcomes={"completeness": OUTAGE}) == []


def test_another_emitter_that_raises_keeps_nothing_from_the_others():
    class Raising(RecordingEmitter):
        def emit(self, scored):
            raise OSError

    last, delivery = RecordingEmitter(), a_delivery()
    maker = SpanMaker(others=[Raising(), last])
    span = maker.open(delivery)
    with pytest.raises(OSError):
        maker.emit(delivery, span=span)

    assert delivery.verdict is ACKNOWLEDGE
    assert len(last.scored) == 1


def test_flush_and_shutdown_are_handed_on():
    heard = []

    class Hearing(RecordingEmitter):
        def flush(self, timeout):
            heard.append(("flush", timeout))
            return False

        def shutdown(self, timeout):
            heard.append(("shutdown", timeout))

    emitter = SpanMaker(others=[Hearing()]).emitter

    assert emitter.flush(1.5) is False
    emitter.shutdown(2.5)
    assert heard == [("flush", 1.5), ("shutdown", 2.5)]


def test_no_emitter_beside_that_of_spans_holds_a_record_back():
    assert SpanMaker(others=[RecordingEmitter(score_wait=50.0)], score_wait=7.0).emitter.score_wait == 7.0


def test_a_worker_quotes_nobody_without_content(signals, monkeypatch):
    for name in ("RAGSPAN_EXPLANATIONS", "RAGSPAN_CAPTURE_CONTENT"):
        monkeypatch.delenv(name, raising=False)
    claim = ClaimVerdict(index=0, supported=False, claim="Beta settles")
    score = Score(value=0.0, explanation="Beta settles", judge="overlap", evidence=(claim,))

    spans = signals.maker.score(a_delivery(a_record(user_id="mary")), {"faithfulness": score})

    sent = "".join(span.to_json() for span in spans) + "".join(str(event.attributes) for event in signals.events())
    assert "1 of 1 claims unsupported: sentence 1" in sent
    assert not [text for text in ("Beta", "card", "mary") if text in sent]
