from __future__ import annotations

import pytest

from ragspan.judges.base import ClaimVerdict
from ragspan.outcomes import Cause, MetricFailure, NotApplicable, Score

GOOD = Score(value=0.75, threshold=0.5, explanation="All but one.", judge="gpt", details={"spread": 0.1})


def attributes_of(telemetry, name="invoke_workflow rivers"):
    return dict(telemetry.span(name).attributes)


def test_a_score_is_flat_attributes_on_the_answers_span(telemetry, make_record, answer):
    answer(telemetry.emitter(), make_record(), {"faithfulness": GOOD})

    attributes = attributes_of(telemetry)
    assert attributes["ragspan.score.faithfulness"] == 0.75
    assert attributes["ragspan.label.faithfulness"] == "pass"
    assert attributes["ragspan.explanation.faithfulness"] == "All but one."
    assert attributes["ragspan.detail.faithfulness.spread"] == 0.1
    assert attributes["ragspan.judge"] == "gpt"


def test_several_judges_are_named_once_each_in_order(telemetry, make_record, answer):
    outcomes = {
        name: Score(value=1, judge=judge) for name, judge in [("a", "z"), ("b", "hhem"), ("c", "z"), ("d", None)]
    }
    answer(telemetry.emitter(), make_record(), outcomes)

    assert attributes_of(telemetry)["ragspan.judge"] == "hhem,z"


def test_the_version_of_the_judges_prompts_is_told_where_it_has_some(telemetry, make_record, answer):
    answer(telemetry.emitter(), make_record(), {"a": Score(value=1, judge="gpt", prompt_version="2"), "b": GOOD})
    answer(telemetry.emitter(), make_record(name="lakes"), {"c": Score(value=1, prompt_version="2")}, late=True)
    answer(telemetry.emitter(), make_record(name="lakes"), {"d": Score(value=1, judge="overlap")}, late=True)

    assert attributes_of(telemetry)["ragspan.prompt_version"] == "2"
    assert attributes_of(telemetry, "evaluation c")["ragspan.prompt_version"] == "2"
    assert "ragspan.prompt_version" not in attributes_of(telemetry, "evaluation d")
    versions = [event.attributes.get("ragspan.prompt_version") for event in telemetry.events]
    assert versions == ["2", None, "2", None]


@pytest.mark.parametrize(
    ("outcome", "expected", "fallbacks"),
    [
        (NotApplicable(reason="no_contexts", detail="SECRET"), {"ragspan.not_applicable.m": "no_contexts"}, [None]),
        (MetricFailure(error_type="timeout", message="SECRET"), {"ragspan.error.m": "timeout"}, [None, None]),
        (
            Score(value=1.0, judge="overlap", fallback="budget_exhausted"),
            {"ragspan.score.m": 1.0, "ragspan.fallback.m": "budget_exhausted"},
            ["budget_exhausted", None],
        ),
    ],
)
def test_an_outcome_says_why_it_is_no_score_of_the_metrics_own_judge(
    telemetry, make_record, answer, outcome, expected, fallbacks
):
    answer(telemetry.emitter(), make_record(), {"m": outcome, "other": GOOD})

    assert {name: value for name, value in attributes_of(telemetry).items() if name.endswith(".m")} == expected
    assert [event.attributes.get("ragspan.fallback.m") for event in telemetry.events] == fallbacks
    assert telemetry.span("invoke_workflow rivers").status.is_unset
    assert all("SECRET" not in span.to_json() for span in telemetry.spans)


def test_the_cause_of_a_failing_answer_is_an_attribute_and_its_place_is_told_without_quotes(
    telemetry, make_record, answer
):
    lost = Cause(kind="lost_before_prompt", claim="SECRET", document=7, search="store", step="CohereRerank")
    verdicts = (ClaimVerdict(index=0, supported=False, claim="SECRET"),)
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
