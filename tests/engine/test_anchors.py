"""Labelled records that tell whether the judge changed."""

from __future__ import annotations

import json
import logging
import pickle
import threading

import pytest
from measured import points_of
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from ragspan.engine import Budget
from ragspan.exceptions import ConfigurationError
from ragspan.judges import LLMJudge, OverlapJudge, Price
from ragspan.judges.base import Completion
from ragspan.metrics import ContextAdherence
from ragspan.outcomes import Outcome, Score, Usage
from ragspan.records import RagRecord

HOUR = 3600.0
ANCHORS = 20


class ChangingJudge:
    """A metric that is right about anchors until it changes, and finds answers good in any case."""

    def __init__(self, name: str = "adherence") -> None:
        self.name = name
        self.seen: list[str] = []
        self.is_changed = False
        self.round_is_over = threading.Semaphore(0)

    async def score(self, record: RagRecord) -> Outcome:
        if record.record_id == "answer":
            return Score(value=1.0, threshold=0.5, judge="changing")
        self.seen.append(record.record_id)
        if self.anchors % ANCHORS == 0:
            self.round_is_over.release()
        is_good = record.record_id.startswith("good")
        return Score(value=float(is_good and not self.is_changed), threshold=0.5, judge="changing")

    @property
    def anchors(self) -> int:
        return len(self.seen)


class PaidClient:
    """Takes a dollar a request."""

    def __init__(self) -> None:
        self.requests = 0

    async def complete(self, messages, *, schema, n, temperature):
        self.requests += 1
        text = json.dumps({"answer": {"grounding": {"reasoning": "stated", "verdict": "grounded"}}})
        return [Completion(text=text, usage=Usage(requests=1, input_tokens=500_000, output_tokens=500_000))] * n


class Anchored:
    """An engine with anchors, and its clock."""

    def __init__(self, fakes, make_engine, *metrics, **options) -> None:
        self.fakes, self.clock, self.reader = fakes, fakes.UnixClock(), InMemoryMetricReader()
        self.emitter = fakes.ListEmitter()
        anchors = [
            (fakes.a_record(record_id=f"{'good' if number % 2 else 'bad'}{number}"), bool(number % 2))
            for number in range(ANCHORS)
        ]
        options = {"judging": "thread", "anchors": anchors} | options
        self.meters = MeterProvider([self.reader])
        self.engine = make_engine(*metrics, emitters=[self.emitter], meter_provider=self.meters, **options)
        self.set_clock()

    def set_clock(self) -> None:
        self.engine._work._score_watch._clock = self.clock

    def answer(self, number: int = 0) -> None:
        """Let an answer be scored; the anchors' round, if one is due, begins after it."""
        self.engine.submit(self.fakes.a_record(record_id="answer", response=f"Because of {number}."))
        assert self.engine.flush(self.fakes.PATIENCE)

    def begin_round(self) -> None:
        """Let the first round begin."""
        self.answer()
        self.clock.now += HOUR
        self.answer()

    def points(self, name: str) -> dict[tuple[object, ...], float]:
        return {
            (point.attributes.get("ragspan.drift.source"), point.attributes.get("ragspan.result")): getattr(
                point, "value", None
            )
            or getattr(point, "count", 0)
            for point in points_of(self.reader, name)
        }


@pytest.fixture
def judge():
    return ChangingJudge()


@pytest.fixture
def anchored(fakes, make_engine, judge):
    return Anchored(fakes, make_engine, judge)


def test_anchors_are_scored_once_an_hour_after_an_answer(anchored, judge, fakes):
    anchored.answer()
    anchored.answer()
    assert judge.anchors == 0, "a program that ends soon pays for none"
    anchored.clock.now += HOUR
    anchored.answer()
    assert judge.round_is_over.acquire(timeout=fakes.PATIENCE)
    anchored.clock.now += HOUR - 1
    anchored.answer()
    assert judge.anchors == ANCHORS, "it is not an hour yet"
    anchored.clock.now += 1
    anchored.answer()
    assert judge.round_is_over.acquire(timeout=fakes.PATIENCE)
    anchored.answer()

    assert judge.anchors == 2 * ANCHORS
    assert sorted(judge.seen[:ANCHORS]) == sorted(set(judge.seen)), "each of them once"


def test_anchors_are_neither_emitted_nor_counted_but_what_they_take_is(anchored, judge, fakes):
    anchored.begin_round()
    assert judge.round_is_over.acquire(timeout=fakes.PATIENCE)
    anchored.answer()

    assert [scored.record.record_id for scored in anchored.emitter.scored] == ["answer"] * 3
    assert anchored.engine.stats().scored == 3
    assert anchored.points("ragspan.outcomes") == {(None, "scored"): 3}
    assert anchored.points("ragspan.judge.duration")[None, None] >= ANCHORS


def test_a_judge_that_changes_raises_the_anchors_alarm_and_not_that_of_the_answers(anchored, judge, fakes, caplog):
    anchored.answer()
    for number in range(60):
        judge.is_changed = number >= 20
        anchored.clock.now += HOUR
        anchored.answer(number)
        assert judge.round_is_over.acquire(timeout=fakes.PATIENCE)
        assert number >= 20 or not caplog.records
        if caplog.records:
            break

    (line,) = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert line.getMessage().startswith("the judge changed: scores of the anchors for adherence by changing agree less")
    assert "records good" in line.getMessage(), "the judge is wrong about these"
    assert number < 26
    assert set(anchored.points("ragspan.drift.evidence")) == {("answers", None), ("anchors", None)}


def test_without_budget_anchors_are_left_out_and_no_fallback_judges_them(fakes, make_engine):
    client = PaidClient()
    judge = LLMJudge(client, name="paid", price=Price(1.0, 1.0))
    budget = Budget(usd_per_day=3.5, fallback=OverlapJudge())
    anchored = Anchored(fakes, make_engine, ContextAdherence(judge, polls=1), budget=budget)
    for number in range(8):
        anchored.clock.now += HOUR
        anchored.answer(number)
    anchored.engine.shutdown(fakes.PATIENCE)

    assert 1 <= client.requests <= 4
    by = {scored.outcomes["context_adherence"].judge for scored in anchored.emitter.scored}
    assert "overlap" in by, "answers have the fallback"
    watched = anchored.engine._work._score_watch._watched
    assert ("anchors", "context_adherence", "overlap") not in watched


@pytest.fixture
def hanging_on_anchors(fakes):
    class HangingOnAnchors(fakes.HangingMetric):
        async def score(self, record):
            return Score(value=1.0) if record.record_id == "answer" else await super().score(record)

    return HangingOnAnchors()


def test_a_shutdown_in_the_middle_of_a_round_does_not_wait_for_it(fakes, make_engine, hanging_on_anchors):
    anchored = Anchored(fakes, make_engine, hanging_on_anchors)
    anchored.begin_round()
    hanging_on_anchors.wait_until_started()
    report = anchored.engine.shutdown(fakes.PATIENCE)

    assert (report.abandoned, report.seconds < fakes.PATIENCE / 2) == (0, True)
    assert hanging_on_anchors.was_cancelled.wait(fakes.PATIENCE)
    assert anchored.engine.stats().errors == {}


def test_a_reference_judge_is_not_asked_about_anchors(fakes, make_engine):
    metric, reference = ChangingJudge(), ChangingJudge("adherence_reference")
    anchored = Anchored(fakes, make_engine, metric, reference)
    anchored.begin_round()
    assert metric.round_is_over.acquire(timeout=fakes.PATIENCE)

    assert reference.anchors == 0


def test_anchors_go_along_to_a_helper_that_exports(fakes, make_engine, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:1")
    anchors = [(fakes.a_record(), True)]
    engine = make_engine(ContextAdherence(OverlapJudge()), anchors=anchors, export="helper")

    assert list(pickle.loads(engine._options.to_travel()).anchors) == anchors


@pytest.mark.parametrize("anchor", [1, ("text", True), (RagRecord(question="", contexts=[], response=""), 1)])
def test_an_anchor_has_to_be_a_record_and_a_label(make_engine, judge, anchor):
    with pytest.raises(ConfigurationError, match=r"anchors\[0\] is .*, but should be a RagRecord and whether"):
        make_engine(judge, anchors=[anchor])
