"""Somebody is told when more answers fail than usual."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragspan.application import configure
from ragspan.exceptions import ConfigurationError
from ragspan.outcomes import NotApplicable, Score, ScoredRecord
from ragspan.records import RagRecord, SpanAnchor
from ragspan.tools.alerts import AlertEmitter

LONG = "5 days " * 100
PASS, FAIL = Score(value=1.0, threshold=0.5), Score(value=0.1, threshold=0.5, explanation='says "5", not "3"')


def scored(number, outcome, *, late=False):
    record = RagRecord(question="How long?", contexts=["3 days"], response=LONG, record_id=f"r{number}")
    return ScoredRecord(record=record, outcomes={"faithfulness": outcome}, late=late)


@pytest.fixture
def watch(clock):
    """Emits answers of which every so many fails, and has the alerts."""
    alerts = []
    emitter = AlertEmitter(on_alert=alerts.append, clock=clock, capture_content=True)

    def emit(count, every=None):
        for number in range(count):
            emitter.emit(scored(number, FAIL if every and number % every == 0 else PASS))
        assert emitter.flush(10)
        return alerts

    emit.emitter = emitter
    return emit


def test_an_alert_has_the_shares_and_answers_as_evidence(watch):
    assert watch(400, every=20) == []
    (alert,) = watch(100, every=3)

    assert alert.usual == pytest.approx(0.05, abs=0.01)
    assert alert.share > 0.1
    assert alert.text.startswith("ragspan: ")
    assert "of the latest 100 answers fail, usually 5% of" in alert.text
    assert alert.by_metric["faithfulness"] == round(alert.share * 100)
    assert (alert.evidence[0]["question"], alert.evidence[0]["response"]) == ("How long?", LONG[:499] + "…")
    assert alert.evidence[0]["finding"] == 'says "5", not "3"'


@pytest.mark.parametrize(
    ("passing", "failing", "told_after", "share", "usual"),
    [
        (290, 90, 10, 0.1, 0.0),  # as soon as there are two hundred answers before the latest hundred
        (293, 90, 7, 0.07, 0.0),
        (400, 90, 6, 0.06, 0.0),
        (2500, 90, 6, 0.06, 0.0),
    ],
)
def test_an_alert_comes_as_soon_as_chance_no_longer_explains_the_failures(
    watch, passing, failing, told_after, share, usual
):
    watch(passing)
    told = next(number for number in range(1, failing) if watch(1, every=1))
    (alert,) = watch(0)

    assert (told, alert.share, alert.usual) == (told_after, share, usual)
    assert alert.by_metric == {"faithfulness": told}
    assert len(alert.evidence) == min(told, 5)


def test_fewer_failures_than_usual_are_told_and_answers_before_the_two_thousand_are_forgotten(watch):
    watch(3000, every=1)
    told = next(number for number in range(1, 90) if watch(1))
    (alert,) = watch(0)

    assert (told, alert.share, alert.usual) == (5, 0.95, 1.0)
    assert alert.text == "ragspan: 95% of the latest 100 answers fail, usually 100% of 2,000 do (faithfulness 95)"


def test_the_evidence_is_the_lowest_score_of_an_answer_with_its_trace(clock):
    alerts = []
    emitter = AlertEmitter(on_alert=alerts.append, clock=clock)
    for number in range(460):
        one = scored(number, FAIL if number > 400 else PASS)
        lower = {"completeness": Score(value=0.05, threshold=0.5)} if number > 400 else {}
        emitter.emit(replace(one, outcomes=one.outcomes | lower, span=SpanAnchor(trace_id=0xA1, span_id=number)))
    emitter.flush(10)

    first = alerts[0].evidence[0]
    assert (first["metric"], first["score"], first["trace_id"]) == ("completeness", 0.05, f"{0xA1:032x}")
    assert alerts[0].by_metric == {"faithfulness": 6, "completeness": 6}


def test_there_is_one_alert_an_hour(watch, clock):
    watch(400, every=50)
    watch(300, every=2)
    assert len(watch(0)) == 1
    clock.advance(3599)
    assert len(watch(1, every=1)) == 1
    clock.advance(1)

    assert len(watch(1, every=1)) == 2


def test_labels_that_come_late_count_once_and_answers_without_a_label_do_not(watch):
    unlabelled = [Score(value=0.4), NotApplicable(reason="no_contexts")]
    for number in range(1000):
        watch.emitter.emit(scored(number, unlabelled[number % 2]))
        watch.emitter.emit(scored(number, PASS, late=True))
        watch.emitter.emit(scored(number, FAIL, late=True))

    assert watch(0) == []


def test_texts_stay_where_content_may_not_leave(clock):
    alerts = []
    emitter = AlertEmitter(on_alert=alerts.append, clock=clock)
    for number in range(500):
        emitter.emit(scored(number, FAIL if number > 400 else PASS))
    emitter.flush(10)

    (evidence, *_) = alerts[0].evidence
    assert not {"question", "response"} & evidence.keys()
    assert '"5"' not in evidence.get("finding", "")


def fail_suddenly(emitter):
    for number in range(500):
        emitter.emit(scored(number, FAIL if number > 400 else PASS))
    assert emitter.flush(30)


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/dead", "http://nowhere.invalid/hook"])
def test_a_dead_webhook_costs_nothing_but_a_line_of_the_log(clock, address, caplog):
    emitter = AlertEmitter(on_alert=address, clock=clock)
    fail_suddenly(emitter)

    assert f"an alert did not reach {address.split('/')[2]}: " in caplog.text
    assert address not in caplog.text


def test_the_variable_and_the_argument_make_the_emitter_and_refuse_what_is_no_address(monkeypatch):
    monkeypatch.setenv("RAGSPAN_ALERT_WEBHOOK", "http://127.0.0.1:9/hook")
    made = configure(emitters=["console"])
    again = configure(emitters=["console"], on_alert=print)
    again.shutdown(1)

    assert [one.on_alert for one in made.engine.emitters[1:]] == ["http://127.0.0.1:9/hook"]
    assert [one.on_alert for one in again.engine.emitters[1:]] == [print]
    with pytest.raises(ConfigurationError, match="on_alert"):
        configure(on_alert="hooks.example.com")
    monkeypatch.setenv("RAGSPAN_ALERT_WEBHOOK", "ftp://x")
    with pytest.raises(ConfigurationError, match="RAGSPAN_ALERT_WEBHOOK"):
        configure()
