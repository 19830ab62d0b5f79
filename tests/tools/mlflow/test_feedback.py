from ragspan import Score
from ragspan.usage import Usage


def assessments(make, given):
    return [make.assessment(one) for one in make.annotations(given)]


def test_a_score_becomes_feedback_on_the_answers_span(make):
    usage = Usage(requests=2, input_tokens=900, output_tokens=40, usd=0.0002)
    score = Score(
        value=0.25,
        explanation="Two claims have no support.",
        threshold=0.5,
        judge="openai:gpt-4o-mini",
        prompt_version="7",
        usage=usage,
        fallback="budget_exhausted",
    )

    (written,) = assessments(make, make.scored({"faithfulness": score}, answer=0xABC, span=0x12))

    assert written.pop("assessment_id").startswith("a-")
    assert written == {
        "assessment_name": "faithfulness",
        "trace_id": "tr-00000000000000000000000000000abc",
        "span_id": "0000000000000012",
        "source": {"source_type": "LLM_JUDGE", "source_id": "openai:gpt-4o-mini"},
        "feedback": {"value": "fail"},
        "rationale": "0.25, passes from 0.50: Two claims have no support.",
        "metadata": {
            "ragspan.record_id": "r1",
            "ragspan.label": "fail",
            "ragspan.score": "0.25",
            "ragspan.threshold": "0.5",
            "ragspan.prompt_version": "7",
            "ragspan.fallback": "budget_exhausted",
            "mlflow.assessment.judgeCost": "0.0002",
            "mlflow.assessment.judgeInputTokens": "900",
            "mlflow.assessment.judgeOutputTokens": "40",
        },
    }


def test_a_score_without_a_label_is_its_value_in_four_digits(make):
    (written,) = assessments(make, make.scored({"faithfulness": Score(value=0.008316752663251097)}))

    assert written["feedback"] == {"value": 0.0083}


def test_the_same_score_in_another_process_and_on_another_span_has_the_same_id(make):
    ids = {make.assessment(make.feedback(value, span=span))["assessment_id"] for value, span in ((0.9, 1), (0.3, 2))}

    assert ids == {"a-7bae8825e4c65d6ab111c643ddca23b9"}  # at most 50 characters, which is what MLflow's column has
