from __future__ import annotations

import pytest

from ragspan.judges.base import ClaimVerdict
from ragspan.outcomes import Cause, NotApplicable, Score

GOOD = Score(value=0.75, threshold=0.5, explanation="All but one.", judge="gpt", details={"spread": 0.1})


def attributes_of(telemetry, name="invoke_workflow rivers"):
    return dict(telemetry.span(name).attributes)


def test_the_cause_of_a_failing_answer_is_an_attribute_and_its_place_is_told_without_quotes(
    telemetry, make_record, answer
):
    lost = Cause(kind="lost_before_prompt", claim="SECRET", document=7, search="store", step="CohereRerank")
    verdicts = (ClaimVerdict(index=0, verdict="unsupported", claim="SECRET"),)
    score = Score(value=0.0, threshold=0.8, causes=(lost,), evidence=verdicts, explanation="SECRET")
    answer(telemetry.emitter(explanations=None), make_record(), {"m": score})

    attributes = attributes_of(telemetry)
    assert attributes["ragspan.cause.m"] == "lost_before_prompt"
    assert attributes["ragspan.explanation.m"] == (
        "Document 7 of store, which CohereRerank dropped, supports a claim that the contexts do not. "
        "1 of 1 claims unsupported: claim 1"
    )
    assert "SECRET" not in str(attributes)


@pytest.mark.parametrize(
    ("judge", "kind", "identifier"),
    [
        ("gpt", "LLM", "gpt"),
        ("overlap", "CODE", "overlap"),
        ("hhem", "CODE", "hhem"),
        ("hhem:own", "CODE", "hhem:own"),
        (None, "CODE", "ragspan"),
    ],
)
def test_each_score_has_an_openinference_copy(telemetry, make_record, answer, judge, kind, identifier):
    outcomes = {
        "first": NotApplicable(reason="no_claims"),
        "second": Score(value=0.25, threshold=0.5, judge=judge, explanation="why"),
    }
    answer(telemetry.emitter(), make_record(), outcomes)

    copies = {key: value for key, value in attributes_of(telemetry).items() if key.startswith("evaluations.")}
    assert copies == {
        "evaluations.0.evaluation.name": "second",
        "evaluations.0.evaluation.score": 0.25,
        "evaluations.0.evaluation.label": "fail",
        "evaluations.0.evaluation.annotator_kind": kind,
        "evaluations.0.evaluation.identifier": identifier,
    }
