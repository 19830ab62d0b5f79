"""Somebody is told when more answers fail than usual."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragspan.exceptions import ConfigurationError
from ragspan.outcomes import NotApplicable, Score, ScoredRecord
from ragspan.records import RagRecord, SpanAnchor
from ragspan.tools.alerts import Alert, AlertEmitter

SPAN = SpanAnchor(trace_id=0xA1, span_id=0xB2)
LONG = "5 days " * 100
PASS, FAIL = Score(value=1.0, threshold=0.5), Score(value=0.1, threshold=0.5, explanation='says "5", not "3"')


def scored(number, outcome, *, late=False):
    record = RagRecord(question="How long?", contexts=["3 days"], response=LONG, record_id=f"r{number}")
    return ScoredRecord(record=record, outcomes={"faithfulness": outcome}, late=late)


@pytest.fixture
def watch(clock):
    """Emits answers of which every so many fails, and has the alerts."""
    alerts = []
    emitter = AlertEmitter(on_alert=alerts.append, clock=clock)

    def emit(count, every=None):
        for number in range(count):
            emitter.emit(scored(number, FAIL if every and number % every == 0 else PASS))
        assert emitter.flush(10)
        return alerts

    emit.emitter = emitter
    return emit


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


def fail_suddenly(emitter, **lower):
    for number in range(450):
        one = scored(number, FAIL if number > 400 else PASS)
        emitter.emit(replace(one, outcomes=one.outcomes | (lower if number > 400 else {}), span=SPAN))
    assert emitter.flush(30)


@pytest.mark.parametrize("content", [False, True])
def test_an_alert_has_the_lowest_score_of_answers_as_evidence_and_texts_where_content_may_leave(clock, content):
    alerts = []
    emitter = AlertEmitter(on_alert=alerts.append, clock=clock, capture_content=content)
    fail_suddenly(emitter, completeness=replace(FAIL, value=0.05))

    texts = {"question": "How long?", "response": LONG[:499] + "…", "finding": 'says "5", not "3"'} if content else {}
    evidence = {"trace_id": f"{0xA1:032x}", "metric": "completeness", "score": 0.05} | texts
    assert alerts == [
        Alert(
            text="ragspan: 6% of the latest 100 answers fail, usually 0% of 307 do (faithfulness 6, completeness 6)",
            share=0.06,
            usual=0.0,
            by_metric={"faithfulness": 6, "completeness": 6},
            evidence=tuple({"record_id": f"r{number}"} | evidence for number in range(402, 407)),
        )
    ]


@pytest.mark.parametrize(
    ("on_alert", "said"),
    [
        ("http://127.0.0.1:9/dead", "127.0.0.1:9: <urlopen error [Errno "),
        ("http://ann:hush@nowhere.invalid/hook", "nowhere.invalid: "),
        (len, "on_alert: TypeError"),
    ],
)
def test_what_fails_to_tell_costs_nothing_but_a_line_of_the_log(clock, on_alert, said, caplog):
    fail_suddenly(emitter := AlertEmitter(on_alert=on_alert, clock=clock))

    (line,) = caplog.messages
    assert line.startswith(f"an alert did not reach {said}")
    assert not any(word in f"{line} {emitter!r}" for word in ("hush", "dead", "hook"))


def test_what_is_no_address_and_no_function_is_refused():
    with pytest.raises(ConfigurationError) as refused:
        AlertEmitter(on_alert="hooks.example.com")
    assert str(refused.value) == (
        "on_alert or RAGSPAN_ALERT_WEBHOOK is 'hooks.example.com', but should be the address of a webhook, such as "
        "https://hooks.example.com/ragspan, or a function"
    )
