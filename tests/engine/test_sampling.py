from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased

from ragspan.engine import ScoringEngine
from ragspan.engine.options import Options
from ragspan.records import RagRecord, SpanAnchor


def a_record(trace_id: int | None = None, record_id: str = "r") -> RagRecord:
    parent = None if trace_id is None else SpanAnchor(trace_id=trace_id, span_id=1)
    return RagRecord(question="", contexts=[], response="", record_id=record_id, parent=parent)


def sampling(**options) -> Options:
    metrics = [FakeMetric(name) for name in ("m", "costly", "other", "free")]
    return ScoringEngine(metrics=metrics, **options)._options


@dataclass
class FakeMetric:
    name: str

    async def score(self, record):
        raise NotImplementedError


@pytest.fixture
def trace_ids() -> list[int]:
    return [random.Random(seed).getrandbits(128) for seed in range(2000)]


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_the_share_that_is_chosen_is_the_rate(trace_ids: list[int], rate: float):
    options = sampling(sample_rate=rate)
    chosen = sum((options.why_not("m", a_record(trace_id), None, {}) is None) for trace_id in trace_ids)

    assert chosen == pytest.approx(rate * 2000, abs=80 if 0 < rate < 1 else 0)
    options.why_not("m", a_record(record_id="\ud800"), None, {})  # an id is what another program says


def test_a_metric_may_have_a_share_of_its_own_and_what_a_lower_share_chooses_a_higher_one_does_too(
    trace_ids: list[int],
):
    options = sampling(sample_rate=0.5, judge_when="costly: 0.1; free: 1")
    chosen = {
        metric: {trace for trace in trace_ids if (options.why_not(metric, a_record(trace), None, {}) is None)}
        for metric in ("costly", "other", "free")
    }

    assert chosen["costly"] < chosen["other"] < chosen["free"]
    assert {metric: len(traces) / len(trace_ids) for metric, traces in chosen.items()} == {
        "costly": pytest.approx(0.1, abs=0.03),
        "other": pytest.approx(0.5, abs=0.04),
        "free": 1.0,
    }


def test_it_does_not_choose_the_same_traces_as_a_sampler_of_traces(trace_ids: list[int]):
    """Else a tenth of the answers of the tenth of the traces that are kept would be all of them."""
    sampler = TraceIdRatioBased(0.1)
    kept = [trace for trace in trace_ids if sampler.should_sample(None, trace, "").decision is not Decision.DROP]
    options = sampling(sample_rate=0.1)
    chosen = sum((options.why_not("m", a_record(trace), None, {}) is None) for trace in kept)

    assert len(kept) > 150
    assert 0.02 < chosen / len(kept) < 0.25
