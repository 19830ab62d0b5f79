"""HHEM in an engine: in its helper process as a rule."""

from __future__ import annotations

import pytest

from ragspan import ScoringEngine
from ragspan.judges import OverlapJudge
from ragspan.metrics import FaithfulnessWithHHEM
from ragspan.records import RagRecord
from ragspan.testing import RecordingEmitter
from ragspan_hhem import HHEMVerifier

PATIENCE = 60.0  # seconds; a helper imports torch first
CLAIMS = ["The Nile is long.", "It begins in France."]


@pytest.fixture
def verifier(tiny_model):
    return HHEMVerifier(model=str(tiny_model.folder), reference_check=False, threshold=0.5)


@pytest.fixture
def scored():
    """Has records scored by an engine, and returns their outcomes by the records' names."""

    def score(*metrics, records, **options):
        emitter = RecordingEmitter(score_wait=PATIENCE)
        engine = ScoringEngine(metrics=metrics, emitters=[emitter], metric_timeout=PATIENCE, **options)
        with engine:
            for record in records:
                engine.submit(record)
            assert engine.flush(PATIENCE)
        return {scored.record.name: scored.outcomes for scored in emitter.scored}

    return score


def records_about(*names):
    return [
        RagRecord(name=name, question="q", contexts=[f"The Nile is in {name}.", "It is long."], response="It is long.")
        for name in names
    ]


@pytest.mark.parametrize("judging", ["helper", "thread"])
async def test_scores_are_the_same_wherever_they_are_computed(scored, verifier, judging):
    metric = FaithfulnessWithHHEM(OverlapJudge(), verifier)
    records = records_about("Egypt", "Sudan", "Uganda")

    outcomes = scored(metric, records=records, judging=judging)

    for record in records:
        found, wanted = outcomes[record.name][metric.name], await metric.score(record)
        assert found.value == wanted.value
        assert [verdict.probability for verdict in found.evidence] == pytest.approx(
            [verdict.probability for verdict in wanted.evidence], abs=1e-5
        )
