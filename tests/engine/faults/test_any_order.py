"""Submits, flushes, forks, faults and a shutdown, in whatever order Hypothesis comes up with."""

from __future__ import annotations

import collections
import os
import threading

import pytest
from forked import in_child
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ragspan.engine import ScoringEngine
from ragspan.outcomes import Score
from ragspan.records import RagRecord
from ragspan.telemetry.emitter_protocols import ScoreEmitter

PATIENCE = 30.0
ROOM = 6  # in the queue
BEHAVIOURS = {
    "scores": None,
    "raises": ValueError("no"),
    "exits": SystemExit(1),
    "is cancelled": KeyboardInterrupt(),
}


class Faulty(ScoreEmitter):
    """A metric, an emitter and the maker of captures in one: each behaves as the machine has told it last."""

    name = "faulty"
    score_wait = PATIENCE

    def __init__(self):
        self.metric_raises = None
        self.emitter_raises = None
        self.may_score = threading.Event()
        self.may_score.set()
        self.emitted = collections.Counter()

    def score(self, record):
        self.may_score.wait()
        if self.metric_raises is not None:
            raise self.metric_raises
        return Score(value=1.0)

    def start(self, record):
        handle = super().start(record)
        if self.emitter_raises is not None:
            raise self.emitter_raises
        return handle

    def emit(self, scored):
        self.emitted[scored.record.record_id] += 1
        if self.emitter_raises is not None:
            raise self.emitter_raises


class Capture:
    """A capture that becomes a record, nothing, or an error."""

    def __init__(self, record_id, kind):
        self._record_id = record_id
        self._kind = kind

    @property
    def size_hint(self):
        if self._kind == "raises in size_hint":
            raise ValueError
        return 1000 if self._kind == "is too large" else 10

    def to_record(self):
        if self._kind == "raises in to_record":
            raise ValueError
        if self._kind == "is no answer":
            return None
        return RagRecord(question="Why?", contexts=["c"], response="r", record_id=self._record_id)


KINDS = ["is an answer", "is an answer", "is no answer", "raises in to_record", "raises in size_hint", "is too large"]


class AnyOrder(RuleBasedStateMachine):
    """An engine with room for few captures, and a model that knows only how many were submitted."""

    def __init__(self):
        super().__init__()
        self.faulty = Faulty()
        self.engine = self.make_engine("oldest")
        self.submitted = collections.Counter()
        self.is_shut_down = False

    def make_engine(self, drop):
        return ScoringEngine(
            metrics=[self.faulty],
            emitters=[self.faulty],
            queue_size=ROOM,
            queue_bytes=100,
            drop=drop,
            concurrency=2,
            metric_timeout=PATIENCE,
            exit_timeout=0,
        )

    @rule(kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=ROOM + 4))
    def submit(self, kinds):
        for kind in kinds:
            record_id = f"{sum(self.submitted.values())}"
            self.submitted[kind] += 1
            self.engine.submit(Capture(record_id, kind))

    @rule(behaviour=st.sampled_from(sorted(BEHAVIOURS)))
    def metric_from_now_on(self, behaviour):
        self.faulty.metric_raises = BEHAVIOURS[behaviour]

    @rule(behaviour=st.sampled_from(sorted(BEHAVIOURS)))
    def emitter_from_now_on(self, behaviour):
        self.faulty.emitter_raises = BEHAVIOURS[behaviour]

    @rule()
    def hang(self):
        self.faulty.may_score.clear()

    @rule()
    def release(self):
        self.faulty.may_score.set()

    @rule()
    def flush(self):
        """With nothing hanging, everything gets out; else the engine says what is true."""
        if self.faulty.may_score.is_set():
            assert self.engine.flush(PATIENCE)
            stats = self.engine.stats()
            assert (stats.queued, stats.in_flight) == (0, 0)
        elif not self.engine.flush(0):
            stats = self.engine.stats()
            assert stats.queued + stats.in_flight > 0

    @precondition(lambda self: hasattr(os, "fork"))
    @rule()
    def fork(self):
        """The child has an engine of its own, which is empty and works; the parent's counts are untouched by it."""
        child = in_child(self.use_in_child)

        expected = "shutdown" if self.is_shut_down else None
        assert child == {"inherited": [0, 0, 0, 0], "emitted": 0 if expected else 1, "dropped": expected}

    def use_in_child(self):
        inherited = self.engine.stats()
        emitted_before = sum(self.faulty.emitted.values())
        self.faulty.metric_raises = self.faulty.emitter_raises = None
        self.faulty.may_score = threading.Event()  # of the parent's event the lock may be held for good
        self.faulty.may_score.set()
        self.engine.submit(Capture("child", "is an answer"))
        self.engine.flush(PATIENCE)
        return {
            "inherited": [inherited.submitted, inherited.queued, inherited.in_flight, inherited.done],
            "emitted": sum(self.faulty.emitted.values()) - emitted_before,
            "dropped": next(iter(self.engine.stats().dropped), None),
        }

    @rule()
    def shut_down(self):
        abandoned = self.engine.shutdown(0 if not self.faulty.may_score.is_set() else PATIENCE).abandoned

        if not self.is_shut_down and self.faulty.may_score.is_set():
            assert abandoned == 0
        self.is_shut_down = True
        assert (self.engine.stats().queued, self.engine.stats().in_flight) == (0, 0)

    @invariant()
    def every_capture_is_in_one_place(self):
        stats = self.engine.stats()
        assert stats.submitted == sum(self.submitted.values())
        assert stats.submitted == stats.queued + stats.in_flight + stats.done + sum(stats.dropped.values())
        assert stats.queued <= ROOM
        assert stats.in_flight <= 2

    @invariant()
    def no_answer_is_emitted_twice(self):
        assert set(self.faulty.emitted.values()) <= {1}

    def teardown(self):
        """At the end each one has ended, in the one way that its kind allows."""
        self.faulty.may_score.set()
        self.engine.shutdown(PATIENCE)
        self.every_capture_is_in_one_place()
        self.no_answer_is_emitted_twice()
        stats = self.engine.stats()
        assert (stats.queued, stats.in_flight) == (0, 0)
        assert stats.finished <= self.submitted["is an answer"]
        assert stats.nothing_to_score <= self.submitted["is no answer"]
        errors = self.submitted["raises in size_hint"] + self.submitted["raises in to_record"]
        assert self.submitted["raises in size_hint"] <= stats.dropped.get("capture_error", 0) <= errors
        assert stats.dropped.get("worker_error", 0) == 0
        not_started = stats.errors.get("emitter_start", 0)  # an emitter whose start raised is not asked to finish
        assert stats.finished - not_started <= len(self.faulty.emitted)
        assert len(self.faulty.emitted) <= stats.finished + stats.dropped.get("shutdown", 0)


TestAnyOrder = pytest.mark.slow(AnyOrder.TestCase)
TestAnyOrder.settings = settings(
    max_examples=40, stateful_step_count=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
