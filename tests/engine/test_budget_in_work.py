"""A budget over the metrics of an engine, with a judge that is paid for."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ragspan.engine import Budget
from ragspan.judges import LLMJudge, Price
from ragspan.judges.judge_protocols import Completion
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.outcomes import NotApplicable
from ragspan.records import RagRecord
from ragspan.usage import Usage

GROUNDED = {"grounding": {"reasoning": "stated", "verdict": "grounded"}}
CLAIM = {"claims": ["The pump hums."]}
SUPPORTED = {"claim_verdicts": [{"number": 1, "reasoning": "stated", "verdict": "supported"}]}
PRICE = Price(1.0, 1.0)


class PaidClient:
    """Gives the answers in turn, and the last one again; each choice takes 100 tokens."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.requests = 0

    async def complete(self, messages, *, schema, n, temperature):
        self.requests += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        text = json.dumps({"answer": answer})
        usages = [Usage(requests=1, input_tokens=60, output_tokens=40)] + [Usage(output_tokens=100)] * (n - 1)
        return [Completion(text=text, usage=usage) for usage in usages]


@pytest.fixture
def a_record():
    return RagRecord(question="What hums?", contexts=["The pump hums at night."], response="The pump hums at night.")


@pytest.fixture
def outcomes_in_turn(fakes, make_engine, a_record):
    """The outcomes of records that are scored one after the other."""

    def run(*metrics, times=1, **options):
        emitter = fakes.ListEmitter()
        engine = make_engine(*metrics, emitters=[emitter], **options)
        for turn in range(times):
            engine.submit(replace(a_record, record_id=f"record {turn}"))  # or a judge would know its answer already
            assert engine.flush(fakes.PATIENCE)
        return [scored.outcomes for scored in emitter.scored]

    return run


def a_judge(*answers):
    client = PaidClient(*answers)
    return LLMJudge(client, name="paid", price=PRICE, mode="thorough"), client


NO_REQUEST_LEFT = NotApplicable(reason="budget_exhausted", detail="requests_per_minute")


def test_a_spent_budget_skips_the_metric_and_sends_nothing(outcomes_in_turn, caplog):
    judge, client = a_judge(GROUNDED)
    *within, beyond = outcomes_in_turn(ContextAdherence(judge, polls=1), times=4, budget=Budget(requests_per_minute=3))

    assert [(own["context_adherence"].judge, own["context_adherence"].fallback) for own in within] == [
        ("paid", None)
    ] * 3
    assert beyond["context_adherence"] == NO_REQUEST_LEFT
    assert client.requests == 3
    assert "the budget has no room for a request: metrics such as context_adherence are" in caplog.text


def test_where_the_budget_is_spent_the_embedded_judge_scores_and_says_so(outcomes_in_turn):
    judge, client = a_judge(GROUNDED)
    _, *beyond = outcomes_in_turn(
        ContextAdherence(judge, polls=1, threshold=0.25),
        times=4,
        judging="thread",
        budget=Budget(requests_per_minute=1, fallback="overlap"),
    )

    scores = [outcomes["context_adherence"] for outcomes in beyond]
    assert [(score.judge, score.fallback, score.threshold) for score in scores] == [
        ("overlap", "budget_exhausted", 0.25)
    ] * 3
    assert client.requests == 1


def test_a_budget_that_runs_out_in_the_middle_falls_back_and_keeps_what_was_spent(outcomes_in_turn):
    judge, client = a_judge(CLAIM, SUPPORTED)
    [outcomes] = outcomes_in_turn(Faithfulness(judge), budget=Budget(requests_per_minute=1, fallback="overlap"))

    score = outcomes["faithfulness"]
    assert (score.judge, score.fallback) == ("overlap", "budget_exhausted")
    assert score.usage == Usage(requests=1, input_tokens=60, output_tokens=40, usd=0.0001)
    assert client.requests == 1


def test_a_fork_begins_with_a_fresh_budget(fakes, make_engine, in_child, a_record):
    judge, _ = a_judge(GROUNDED)
    emitter = fakes.ListEmitter()
    engine = make_engine(ContextAdherence(judge, polls=1), emitters=[emitter], budget=Budget(requests_per_minute=1))

    def score_one():
        fakes.score(engine, a_record)
        return type(emitter.scored[-1].outcomes["context_adherence"]).__name__

    assert [score_one(), score_one()] == ["Score", "NotApplicable"]
    assert in_child(lambda: [score_one(), score_one()]) == ["Score", "NotApplicable"]
