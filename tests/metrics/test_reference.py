"""A second opinion on some of the answers: another judge, a name of its own, and a count of where both agree."""

from __future__ import annotations

import asyncio
import pickle

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from ragspan.config import Settings
from ragspan.defaults import engine_from
from ragspan.engine import ScoringEngine
from ragspan.exceptions import ConfigurationError
from ragspan.judges import OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence, Reference
from ragspan.outcomes import Score
from ragspan.records import RagRecord

RECORD = RagRecord(question="How high?", contexts=["The tower is 330 metres high."], response="It is 330 metres high.")


def counted_labels(reader):
    return [
        (dict(point.attributes), point.value)
        for resource in reader.get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "ragspan.labels"
        for point in metric.data.data_points
    ]


def test_a_reference_scores_as_its_metric_does_under_a_name_of_its_own():
    reference = Reference(kind=ContextAdherence, judge=OverlapJudge())
    outcome, expected = (asyncio.run(one.score(RECORD)) for one in (reference, ContextAdherence(OverlapJudge())))

    assert reference.name == "context_adherence_reference"
    assert isinstance(outcome, Score)
    assert outcome == expected


def test_a_reference_travels_to_other_processes():
    reference = Reference(kind=Completeness, judge=OverlapJudge())

    assert pickle.loads(pickle.dumps(reference)).name == "completeness_reference"


def test_a_judge_that_cannot_answer_is_refused_at_once():
    with pytest.raises(ConfigurationError, match="judge"):
        Reference(kind=ContextAdherence, judge=object())  # type: ignore[arg-type]


def test_an_answer_that_both_judged_is_counted_by_both_labels():
    reader = InMemoryMetricReader()
    engine = ScoringEngine(
        metrics=[ContextAdherence(OverlapJudge()), Reference(kind=ContextAdherence, judge=OverlapJudge())],
        emitters=[],
        judging="thread",
        meter_provider=MeterProvider([reader]),
    )
    try:
        engine.submit(RECORD)
        assert engine.flush(30)
    finally:
        engine.shutdown(10)

    ((attributes, value),) = counted_labels(reader)
    assert value == 1
    assert attributes == {
        "gen_ai.evaluation.name": "context_adherence",
        "gen_ai.evaluation.score.label": "pass",
        "ragspan.reference.label": "pass",
    }


def test_settings_give_each_metric_a_reference_for_a_share_of_the_answers():
    settings = Settings(reference_judge="overlap", reference_share=0.1, metrics=("faithfulness", "completeness"))
    engine = engine_from(settings, emitters=[])
    try:
        options = engine._options
        assert [metric.name for metric in options.metrics] == [
            "faithfulness",
            "completeness",
            "faithfulness_reference",
            "completeness_reference",
        ]
        assert options.metric_sample_rates == {"faithfulness_reference": 0.1, "completeness_reference": 0.1}
    finally:
        engine.shutdown(1)
