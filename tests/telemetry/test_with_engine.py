"""The emitter and the metrics as the engine uses them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from ragspan.engine import ScoringEngine
from ragspan.judges.session import report_usage
from ragspan.outcomes import NotApplicable, Score, Usage


@dataclass(frozen=True, kw_only=True)
class Half:
    name: str = "half"

    async def score(self, record):
        report_usage(Usage(requests=1, input_tokens=10, output_tokens=2))
        return Score(value=0.5, threshold=0.4, judge="gpt")


@dataclass(frozen=True, kw_only=True)
class WaitsForTheAnswersSpan:
    """Has its score when the answer's span has been exported without it."""

    exported: threading.Event = field(default_factory=threading.Event)
    name: str = "slow"

    def score(self, record):
        assert self.exported.wait(30)
        return Score(value=0.25)

    def on_start(self, span, parent_context=None): ...

    def on_end(self, span):
        if span.name.startswith("invoke"):
            self.exported.set()

    def _on_ending(self, span): ...

    def force_flush(self, timeout_millis):
        return True


@dataclass(frozen=True, kw_only=True)
class Declines:
    name: str = "declines"

    async def score(self, record):
        return NotApplicable(reason="no_claims")


@dataclass(frozen=True, kw_only=True)
class Breaks:
    name: str = "breaks"

    async def score(self, record):
        raise ConnectionError("no judge")


@pytest.fixture
def score_one(telemetry, make_record):
    def run(*metrics, score_wait):
        emitters = [telemetry.emitter(score_wait=score_wait)]
        with ScoringEngine(metrics=metrics, emitters=emitters, meter_provider=telemetry.meter_provider) as engine:
            engine.submit(make_record())
            assert engine.flush(timeout=30)

    return run


def test_every_outcome_is_counted_once_late_ones_included(telemetry, score_one):
    slow = WaitsForTheAnswersSpan()
    telemetry.tracer_provider.add_span_processor(slow)
    score_one(Half(), Declines(), Breaks(), slow, score_wait=0)

    counted = [(dict(point.attributes), point.value) for point in telemetry.points("ragspan.outcomes")]
    assert sorted((told["gen_ai.evaluation.name"], told["ragspan.result"], number) for told, number in counted) == [
        ("breaks", "failed", 1),
        ("declines", "not_applicable", 1),
        ("half", "scored", 1),
        ("slow", "scored", 1),
    ]
    assert {told.get("ragspan.reason") for told, _ in counted} == {None, "no_claims", "ConnectionError"}
