from __future__ import annotations

import os

import pytest
from forked import in_child

from ragspan.engine import EngineStats
from ragspan.engine.processor import BackgroundProcessor, ProcessorOptions
from ragspan.engine.self_metrics import SelfMetrics
from ragspan.outcomes import Cause, MetricFailure, NotApplicable, Score
from ragspan.usage import Usage


class Engine(BackgroundProcessor):
    """One whose queue has had its records."""

    def __init__(self, meter_provider=None, *, name, finished_as="scored", **counts):
        self._finished_as = finished_as
        options = ProcessorOptions(queue_size=100, queue_bytes=5000, concurrency=1, exit_timeout=0, name=name)
        super().__init__(options, is_enabled=True, meter_provider=meter_provider)
        self._queue.stats, self._queue.bytes = EngineStats(**counts), counts.get("queued", 0) * 1000

    def _make_work(self, log):
        """It does none."""


@pytest.fixture
def name(request):
    """A name that no engine of another test can have; one of those may not be collected yet."""
    return request.node.name


def attributes(**given):
    return frozenset({f"ragspan.{key}": value for key, value in given.items()}.items())


@pytest.mark.parametrize(
    ("metric", "value"),
    [("queue.size", 7), ("queue.bytes", 7000), ("queue.capacity", 100), ("queue.capacity.bytes", 5000)],
)
def test_the_queue_and_its_capacity_are_told_in_records_and_bytes(telemetry, name, metric, value):
    engine = Engine(telemetry.meter_provider, name=name, queued=7)

    assert telemetry.values(f"ragspan.{metric}") == {attributes(engine=name): value}
    assert engine


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (Score(value=0.5), {"result": "scored"}),
        (Score(value=0.5, fallback="budget_exhausted"), {"result": "scored", "reason": "budget_exhausted"}),
        (NotApplicable(reason="no_contexts"), {"result": "not_applicable", "reason": "no_contexts"}),
        (MetricFailure(error_type="timeout", message="secret"), {"result": "failed", "reason": "timeout"}),
        (MetricFailure(error_type="", message="secret"), {"result": "failed", "reason": "_OTHER"}),
    ],
)
def test_outcomes_are_told_by_metric_result_and_reason(telemetry, outcome, told):
    own = SelfMetrics(telemetry.meter_provider)
    own.ended("faithfulness", outcome)
    own.ended("faithfulness", outcome)

    (point,) = telemetry.points("ragspan.outcomes")
    assert dict(point.attributes) == {"gen_ai.evaluation.name": "faithfulness"} | {
        f"ragspan.{key}": value for key, value in told.items()
    }
    assert point.value == 2


def test_a_failing_score_is_told_by_the_cause_of_most_claims_and_the_step_that_lost_them(telemetry):
    own = SelfMetrics(telemetry.meter_provider)
    lost, unsupported = Cause(kind="lost_before_prompt", document=7, step="CohereRerank"), Cause(kind="unsupported")
    own.ended("faithfulness", Score(value=0.1, threshold=0.8, causes=(lost, lost, unsupported)))
    own.ended("faithfulness", Score(value=0.1, threshold=0.8, causes=(unsupported,)))
    own.ended("faithfulness", Score(value=0.1, threshold=0.8))

    name = ("gen_ai.evaluation.name", "faithfulness")
    assert telemetry.values("ragspan.causes") == {
        frozenset({name, ("ragspan.cause", "lost_before_prompt"), ("ragspan.step", "CohereRerank")}): 1,
        frozenset({name, ("ragspan.cause", "unsupported")}): 1,
    }


def test_records_are_told_by_result_and_reason(telemetry, name):
    engine = Engine(
        telemetry.meter_provider, name=name, finished=5, nothing_to_score=2, dropped={"queue_full": 3, "shutdown": 1}
    )

    assert telemetry.values("ragspan.records") == {
        attributes(engine=name, result="scored"): 5,
        attributes(engine=name, result="nothing_to_score"): 2,
        attributes(engine=name, result="dropped", reason="queue_full"): 3,
        attributes(engine=name, result="dropped", reason="shutdown"): 1,
    }
    assert engine


def test_several_engines_have_a_series_each_and_warn_about_nothing(telemetry, name, caplog):
    engines = [Engine(telemetry.meter_provider, name=name, queued=number) for number in (1, 2, 3)]

    assert telemetry.values("ragspan.queue.size") == {
        attributes(engine=name): 1,
        attributes(engine=f"{name}-2"): 2,
        attributes(engine=f"{name}-3"): 3,
    }
    assert caplog.records == []
    assert engines


def test_tokens_are_told_in_kinds_that_add_up_and_cost_where_the_price_is_known(telemetry):
    own = SelfMetrics(telemetry.meter_provider)
    own.judged("m", "gpt", 1.0, Usage(requests=1, input_tokens=100, cached_tokens=60, output_tokens=9, usd=0.25))
    own.judged("m", "gpt", 1.0, Usage(requests=1, input_tokens=100, cached_tokens=60, output_tokens=9))

    by_kind = {point.attributes["gen_ai.token.type"]: point.value for point in telemetry.points("ragspan.judge.tokens")}
    assert by_kind == {"input": 80, "cached": 120, "output": 18}
    (point,) = telemetry.points("ragspan.judge.cost")
    assert point.value == 0.25


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_tells_about_its_own_engines(telemetry):
    engine = Engine(telemetry.meter_provider, name="inherited")

    def use():
        own = Engine(telemetry.meter_provider, name="own", queued=3)
        seen = telemetry.values("ragspan.queue.size")
        return own and [seen[attributes(engine="own")], len(seen)]

    assert in_child(use) == [3, 2]
    assert engine
