"""The claim map on spans: verdicts with their places, where content may stand."""

from __future__ import annotations

import json

import pytest

from ragspan import RagRecord, RetrievedContext, ScoringEngine
from ragspan.judges import OverlapJudge
from ragspan.judges.base import ClaimVerdict
from ragspan.metrics import Faithfulness
from ragspan.outcomes import Score
from ragspan.telemetry.content import ContentPolicy
from ragspan.telemetry.score_attributes import claim_map

FEE = "The annual fee of the silver card is 49 euros."
INVENTED = "Gamma sends invoices by registered mail."
RECORD = RagRecord(
    question="What is the fee?",
    contexts=[RetrievedContext(text="Cards are grey."), RetrievedContext(text=f"In March. {FEE}", id="fees")],
    response=f"{FEE} {INVENTED}",
)


def shown(record=RECORD, **policy):
    verdicts = (
        ClaimVerdict(index=0, verdict="supported", claim=FEE, probability=0.98765),
        ClaimVerdict(index=1, verdict="unsupported", claim=INVENTED),
    )
    told = claim_map(record, Score(value=0.5, evidence=verdicts), ContentPolicy(**({"capture_content": True} | policy)))
    return None if told is None else json.loads(told)


def test_each_verdict_has_its_places_in_the_response_and_in_the_contexts():
    supported, invented = shown()

    assert supported == {
        "claim": FEE,
        "verdict": "supported",
        "ground": "context",
        "probability": 0.988,
        "response": [0, len(FEE)],
        "contexts": [{"context": 1, "start": 10, "end": 10 + len(FEE), "id": "fees"}],
    }
    assert invented == {
        "claim": INVENTED,
        "verdict": "unsupported",
        "ground": "none",
        "response": [len(FEE) + 1, len(RECORD.response)],
    }


@pytest.mark.parametrize("policy", [{"capture_content": False}, {"capture_content": "events"}, {"hidden": {"outputs"}}])
def test_there_is_none_where_the_response_may_not_stand(policy):
    assert shown(**policy) is None


def test_of_many_claims_as_many_are_told_as_one_attribute_holds():
    verdicts = tuple(ClaimVerdict(index=at, verdict="unsupported", claim=f"{at} " * 90) for at in range(100))

    told = claim_map(RECORD, Score(value=0.0, evidence=verdicts), ContentPolicy(capture_content=True))

    assert len(told) <= 8192
    assert 20 < len(json.loads(told)) < 50


@pytest.mark.parametrize("spans", ["answer", "scores"])
def test_it_stands_on_the_span_that_has_the_score_and_is_redacted(telemetry, parent, spans):
    emitter = telemetry.emitter(capture_content=True, spans=spans)
    record = RagRecord(
        question=RECORD.question, contexts=RECORD.contexts, response=RECORD.response, parent=parent, name="rivers"
    )
    with ScoringEngine(
        metrics=[Faithfulness(OverlapJudge())],
        emitters=[emitter],
        judging="thread",
        redact=lambda text: text.replace("Gamma", "[name]"),
    ) as engine:
        engine.submit(record)
        assert engine.flush(60)

    name = "invoke_workflow rivers" if spans == "answer" else "evaluation faithfulness"
    told = telemetry.span(name).attributes["ragspan.claims.faithfulness"]
    assert [one["verdict"] for one in json.loads(told)] == ["supported", "unsupported"]
    assert "Gamma" not in told
    assert "[name]" in told
