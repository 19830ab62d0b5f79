"""What becomes of feedback at MLflow, and of what is there already."""

import pytest

from ragspan.tools import BatchRejected, Delivered, ExportError, SpanNotFound, Unavailable


@pytest.mark.parametrize("refusal", [400, 500])
def test_a_repeat_makes_no_second_assessment_and_replaces_what_no_longer_holds(mlflow, write, make, refusal):
    """Entries of metadata are merged by the server; none can be removed."""
    mlflow.refusal = refusal, {"error_code": "INTERNAL_ERROR", "message": "due to a constraint violation."}
    write(make.feedback(0.9, explanation="old", fallback="budget_exhausted"))
    write(make.feedback(0.9, explanation="old", fallback="budget_exhausted"))

    assert write(make.feedback(0.3)) == [Delivered()]
    (assessment,) = mlflow.assessments[make.trace(1)]
    assert (assessment["feedback"], assessment["rationale"]) == ({"value": "fail"}, "0.30, passes from 0.50")
    assert (assessment["metadata"]["ragspan.label"], assessment["metadata"]["ragspan.fallback"]) == ("fail", "")


def test_what_others_wrote_is_left_alone(mlflow, write, make):
    human = {"assessment_id": "a-human", "assessment_name": "faithfulness", "feedback": {"value": 1.0}}
    mlflow.assessments[make.trace(1)].append(human)

    write(make.feedback(0.9, record="r1"), make.feedback(0.2, record="r2"))

    assert [one["feedback"]["value"] for one in mlflow.assessments[make.trace(1)]] == [1.0, "pass", "fail"]


@pytest.mark.parametrize("has_users", [False, True])
def test_a_trace_that_has_not_arrived_is_told_from_other_trouble(mlflow, write, make, has_users):
    mlflow.has_users = has_users

    assert write(make.feedback(answer=9), make.feedback()) == [SpanNotFound(), Delivered()]


@pytest.mark.parametrize(
    ("reply", "result"),
    [
        ((400, {"error_code": "INVALID_PARAMETER_VALUE"}), BatchRejected("http_400")),
        ((404, "<h1>Not Found</h1>"), Unavailable("http_404")),
        ((500, "oops"), ExportError("http_500")),
    ],
    ids=str,
)
def test_a_reply_says_whether_the_feedback_or_the_server_is_the_reason(mlflow, write, make, reply, result):
    mlflow.script.append(reply)

    (found,) = write(make.feedback())

    assert (type(found), str(found)) == (type(result), str(result))


def test_a_value_is_a_label_that_mlflow_colours(mlflow, write, make):
    write(make.feedback(0.25))

    (assessment,) = mlflow.assessments[make.trace(1)]
    assert assessment["feedback"] == {"value": "fail"}
    assert assessment["metadata"]["ragspan.score"] == "0.25"
