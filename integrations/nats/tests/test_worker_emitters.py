"""Between the engine and its emitters: what is to be scored again is kept from all of them."""

from __future__ import annotations

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from worker_parts import OUTAGE, SpanMaker, a_delivery, a_record, ids_of, scored

from ragspan.judges.base import ClaimVerdict
from ragspan.outcomes import MetricFailure, Score
from ragspan.records import SpanAnchor
from ragspan.telemetry.base import EmitHandle
from ragspan.testing import InMemoryTelemetry, RecordingEmitter
from ragspan_nats.worker.delivery import ACKNOWLEDGE, Verdict
from ragspan_nats.worker.emitters import Completion, OtherEmitter
from ragspan_nats.worker.in_hand import InHand

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

    assert delivery.verdict.ending == "give_back"
    assert (list(spans), signals.events(), signals.measurements()) == ([], [], [])


def test_a_record_that_is_put_aside_writes_nothing_either(signals):
    delivery = a_delivery(number=5)

    spans = signals.maker.score(delivery, {"completeness": OUTAGE})

    assert delivery.verdict.ending == "put_aside"
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


def test_a_record_that_was_given_back_writes_nothing_when_its_scores_come(signals):
    delivery = a_delivery()
    span = signals.maker.open(delivery)
    signals.maker.in_hand.remove(delivery)

    signals.maker.emit(delivery, {"faithfulness": Score(value=0.5)}, span=span)

    assert (delivery.verdict, signals.events(), signals.measurements()) == (None, [], [])


def test_two_messages_that_hold_records_with_the_same_id_are_two_deliveries(signals):
    one, other = (a_delivery(a_record("same")) for _ in range(2))
    anchors = [signals.maker.open(delivery) for delivery in (one, other)]

    kept = signals.maker.emit(one, span=anchors[0])
    withheld = signals.maker.emit(other, {"completeness": OUTAGE}, span=anchors[1])

    assert (one.verdict.ending, other.verdict.ending) == ("acknowledge", "give_back")
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


class Others:
    """An emitter behind what a worker puts before it."""

    def __init__(self):
        self.in_hand = InHand()
        self.other = RecordingEmitter()
        self.emitter = OtherEmitter(self.other, self.in_hand)

    def emit(self, verdict, *, is_in_hand=True):
        delivery = a_delivery()
        delivery.verdict = verdict
        if is_in_hand:
            self.in_hand.add(delivery)
        self.emitter.start(delivery.record).finish(scored(delivery.record))
        return self.other.scored


def test_another_emitter_gets_what_is_exported():
    (got,) = Others().emit(ACKNOWLEDGE)

    assert got.outcomes == {"faithfulness": Score(value=1.0)}


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict(ending="give_back", reason="judge_outage"),
        Verdict(ending="put_aside", reason="deliveries_used_up"),
        None,
    ],
    ids=["given back", "put aside", "none"],
)
def test_another_emitter_gets_nothing_of_what_is_withheld(verdict):
    assert Others().emit(verdict) == []


def test_another_emitter_gets_nothing_of_what_was_given_back_in_the_meantime():
    assert Others().emit(ACKNOWLEDGE, is_in_hand=False) == []


def test_another_emitter_that_finds_the_span_is_heard():
    class Finding(RecordingEmitter):
        def start(self, record):
            return EmitHandle(self.emit, SpanAnchor(trace_id=1, span_id=2))

    assert OtherEmitter(Finding(), InHand()).start(a_record()).span == SpanAnchor(trace_id=1, span_id=2)


@pytest.mark.parametrize(("outcome", "is_kept"), [(Score(value=0.5), True), (OUTAGE, False)], ids=["scored", "outage"])
def test_native_writers_find_the_scores_of_what_is_exported_with_its_delivery(signals, outcome, is_kept):
    delivery = a_delivery()
    signals.maker.emit(delivery, {"faithfulness": outcome}, span=signals.maker.open(delivery))

    assert (delivery.scored is not None) is is_kept
    if is_kept:
        assert delivery.scored.outcomes == {"faithfulness": outcome}
        assert delivery.scored.span is not None


def test_flush_and_shutdown_are_handed_on():
    heard = []

    class Hearing(RecordingEmitter):
        def flush(self, timeout):
            heard.append(("flush", timeout))
            return False

        def shutdown(self, timeout):
            heard.append(("shutdown", timeout))

    emitter = OtherEmitter(Hearing(), InHand())

    assert emitter.flush(1.5) is False
    emitter.shutdown(2.5)
    assert heard == [("flush", 1.5), ("shutdown", 2.5)]


def test_no_emitter_beside_that_of_spans_holds_a_record_back():
    assert OtherEmitter(RecordingEmitter(score_wait=5.0), InHand()).score_wait == 0.0
    assert Completion(InHand(), print).score_wait == 0.0
    assert SpanMaker(score_wait=7.0).emitter.score_wait == 7.0


def test_a_record_that_comes_to_the_end_is_handed_on_unless_it_was_given_back():
    in_hand = InHand()
    done = []
    completion = Completion(in_hand, done.append)
    known, unknown = a_delivery(), a_delivery()
    in_hand.add(known)

    for delivery in (known, unknown):
        completion.start(delivery.record).finish(
            scored(delivery.record, {"faithfulness": MetricFailure(error_type="x", message="")})
        )

    assert done == [known]
    assert completion.flush(0) is True
    completion.shutdown(0)


def test_a_worker_quotes_nobody_without_content(signals, monkeypatch):
    for name in ("RAGSPAN_EXPLANATIONS", "RAGSPAN_CAPTURE_CONTENT"):
        monkeypatch.delenv(name, raising=False)
    claim = ClaimVerdict(index=0, supported=False, claim="Beta settles")
    score = Score(value=0.0, explanation="Beta settles", judge="overlap", evidence=(claim,))

    spans = signals.maker.score(a_delivery(a_record(user_id="mary")), {"faithfulness": score})

    sent = "".join(span.to_json() for span in spans) + "".join(str(event.attributes) for event in signals.events())
    assert "1 of 1 claims unsupported: sentence 1" in sent
    assert not [text for text in ("Beta", "card", "mary") if text in sent]
