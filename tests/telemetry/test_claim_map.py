"""The claim map on spans: verdicts with their places, where content may stand."""

from __future__ import annotations

import json

import pytest

from ragspan import Background, RagRecord, RetrievedContext, ScoringEngine
from ragspan.judges import OverlapJudge
from ragspan.judges.judge_protocols import ClaimVerdict
from ragspan.metrics import Faithfulness
from ragspan.outcomes import Score
from ragspan.records import Retrieval
from ragspan.telemetry.content import ContentPolicy
from ragspan.telemetry.score_attributes import claim_map

FEE = "The annual fee of the silver card is 49 euros."
INVENTED = "Gamma sends invoices by registered mail."
RECORD = RagRecord(
    question="What is the fee?",
    contexts=[RetrievedContext(text="Cards are grey."), RetrievedContext(text=f"In March. {FEE}", id="fees")],
    response=f"{FEE} {INVENTED}",
)


def shown(*, content=True):
    verdicts = (
        ClaimVerdict(index=0, verdict="supported", claim=FEE, probability=0.98765),
        ClaimVerdict(index=1, verdict="unsupported", claim=INVENTED),
    )
    told = claim_map(RECORD, Score(value=0.5, evidence=verdicts), ContentPolicy(capture_content=content))
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


@pytest.mark.parametrize(("content", "hidden"), [(False, "0"), ("events", "0"), (True, "1")])
def test_there_is_none_where_the_response_may_not_stand(monkeypatch, content, hidden):
    monkeypatch.setenv("OPENINFERENCE_HIDE_OUTPUTS", hidden)

    assert shown(content=content) is None


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
    assert [one["verdict"] for one in json.loads(told)] == ["supported", "unsure"]
    assert "Gamma" not in told
    assert "[name]" in told


@pytest.mark.parametrize("kind", ["metadata", "tool", "history", "other"])
def test_the_map_names_the_kind_of_background_that_a_claim_rests_on(kind):
    record = RagRecord(
        question="?",
        contexts=["Cards are grey."],
        response=f"{FEE} Cards are grey.",
        background=[Background(text=f"row 1: {FEE}", kind=kind)],
    )
    verdicts = (
        ClaimVerdict(index=0, verdict="supported", claim=FEE),
        ClaimVerdict(index=1, verdict="supported", claim="Cards are grey."),
        ClaimVerdict(index=2, verdict="unsure", claim=INVENTED),
    )

    told = claim_map(record, Score(value=0.5, evidence=verdicts), ContentPolicy(capture_content=True))

    by_background, by_context, unsure = json.loads(told)
    assert (by_background["ground"], by_background["contexts"]) == (kind, [])
    assert (by_context["ground"], by_context["contexts"][0]["context"]) == ("context", 0)
    assert unsure["verdict"] == "unsure"
    assert "ground" not in unsure


def test_the_span_says_why_contexts_are_unknown(telemetry, parent):
    emitter = telemetry.emitter()
    record = RagRecord(
        question="?", contexts=None, response=FEE, contexts_unknown="picture", parent=parent, name="rivers"
    )
    with ScoringEngine(metrics=[Faithfulness(OverlapJudge())], emitters=[emitter], judging="thread") as engine:
        engine.submit(record)
        assert engine.flush(60)

    attributes = telemetry.span("invoke_workflow rivers").attributes
    assert attributes["ragspan.contexts_unknown"] == "picture"
    assert attributes["ragspan.not_applicable.faithfulness"] == "contexts_unknown"


@pytest.mark.parametrize("content", [True, False])
def test_what_was_masked_before_the_prompt_is_on_no_span_of_the_answer(telemetry, parent, content):
    masked = RetrievedContext(text="[name] pays the annual fee of 49 euros.", id="fees", truncated=True)
    found = RetrievedContext(text="Ottilie pays the annual fee of 49 euros.", id="fees")
    record = RagRecord(
        question="Who pays?",
        contexts=[masked],
        response="Gamma pays the annual fee of 49 euros.",
        retrievals=(Retrieval(name="search", query="fee", started_ns=1, ended_ns=2, contexts=(found,)),),
        parent=parent,
        name="rivers",
    )
    emitter = telemetry.emitter(capture_content=content)
    with ScoringEngine(metrics=[Faithfulness(OverlapJudge())], emitters=[emitter], judging="thread") as engine:
        engine.submit(record)
        assert engine.flush(60)

    assert "Ottilie" not in repr(dict(telemetry.span("invoke_workflow rivers").attributes))
