"""What every writer writes of an answer's outcomes, whatever its backend is."""

from __future__ import annotations

import pytest

from ragspan import ConfigurationError, RagRecord
from ragspan.judges.judge_protocols import ClaimVerdict
from ragspan.outcomes import Score, ScoredRecord, ScreenScore
from ragspan.records import SpanAnchor
from ragspan.tools import Annotation, DeliveryOptions, ScoreWriter
from ragspan.tools.http import Endpoint
from ragspan.usage import Usage

ANSWER = SpanAnchor(trace_id=0xA1, span_id=0xB2)


class Notebook(ScoreWriter):
    """Is only asked what it would write."""

    name = "notebook"

    def server(self):
        return Endpoint(url="http://localhost")

    def write(self, batch):
        raise NotImplementedError


@pytest.fixture
def annotations():
    """What is written of these outcomes."""

    def annotations(outcomes, *, record_id="r1", ended_ns=2, late=False, refusal=False, **options):
        record = RagRecord(
            question="q",
            contexts=["c"],
            response="r",
            record_id=record_id,
            started_ns=min(1, ended_ns),
            ended_ns=ended_ns,
        )
        scored = ScoredRecord(
            record=record,
            outcomes=outcomes,
            span=ANSWER,
            late=late,
            refusal=refusal,
            asked=(late and "doubtful") or None,
        )
        return list(Notebook(**options).items_of(scored, ANSWER))

    return annotations


def test_a_score_says_all_that_is_known_of_it(annotations):
    score = Score(
        value=0.5,
        threshold=0.8,
        explanation="Zanzifer said so.",
        evidence=(ClaimVerdict(index=0, verdict="unsupported", claim="Zanzifer said so."),),
        screen=ScreenScore(value=1, label="pass", judge="overlap"),
        judge="gpt-4o-mini",
        prompt_version="7",
        fallback="budget_exhausted",
        details={"claims": 2},
        usage=Usage(requests=1, input_tokens=100, output_tokens=20, usd=0.01),
    )

    (one,) = annotations({"faithfulness": score}, late=True, refusal=True)

    assert one == Annotation(
        trace_id=f"{0xA1:032x}",
        span_id=f"{0xB2:016x}",
        name="faithfulness",
        record_id="r1",
        ended_ns=2,
        value=0.5,
        label="fail",
        judge="gpt-4o-mini",
        annotator="LLM",
        explanation="1 of 1 claims unsupported: claim 1",
        metadata={
            "record_id": "r1",
            "judge": "gpt-4o-mini",
            "prompt_version": "7",
            "fallback": "budget_exhausted",
            "threshold": 0.8,
            "asked": "doubtful",
            "screen": 1.0,
            "late": True,
            "refusal": True,
            "details": {"claims": 2},
            "usage": {"requests": 1, "input_tokens": 100, "output_tokens": 20, "usd": 0.01},
        },
    )


def test_a_user_is_quoted_where_a_variable_allows_it(annotations, monkeypatch):
    monkeypatch.setenv("RAGSPAN_EXPLANATIONS", "true")

    (one,) = annotations({"faithfulness": Score(value=0.5, explanation="Zanzifer said so.")}, ended_ns=-1)

    assert (one.explanation, one.ended_ns) == ("Zanzifer said so.", 0)


def test_explanations_are_cut_and_made_sound(annotations):
    score = Score(value=1.0, explanation="ab\0\ud800" + "c" * 2000)

    (one,) = annotations({"faithfulness": score}, explanations=True, ended_ns=2**63)

    assert (one.explanation, one.ended_ns) == ("ab\ufffd\ufffd" + "c" * 995 + "…", 2**63 - 1)


@pytest.mark.parametrize(("name", "value"), [("queue_bytes", 0), ("batch_size", True), ("linger", float("inf"))])
def test_a_limit_that_cannot_be_is_named(name, value):
    with pytest.raises(ConfigurationError, match=f"^{name} is {value!r}, but should be a (whole )?number"):
        DeliveryOptions(**{name: value})
