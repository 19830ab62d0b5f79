"""What becomes of a batch at MLflow, and of what is there already."""

import pytest

from ragspan.delivery import Delivered, Failed, Rejected, SpanNotFound, Unavailable
from ragspan.delivery.http import ServerError


def values(mlflow, trace_id):
    return {one["assessment_name"]: one["feedback"].get("value") for one in mlflow.assessments[trace_id]}


@pytest.mark.parametrize("parallel", [1, 4])
def test_feedback_is_created(mlflow, write, make, parallel):
    items = [make.feedback(number / 100, metric=f"metric{number}", answer=1 + number % 2) for number in range(40)]

    assert write(*items, parallel=parallel) == [Delivered()] * 40
    assert values(mlflow, make.trace(1)) == {item.name: item.value for item in items[::2]}
    assert values(mlflow, make.trace(2)) == {item.name: item.value for item in items[1::2]}


@pytest.mark.parametrize("refusal", [400, 500])
def test_a_repeat_makes_no_second_assessment_and_replaces_what_no_longer_holds(mlflow, write, make, refusal):
    """Entries of metadata are merged by the server; none can be removed."""
    mlflow.refusal = refusal, {"error_code": "INTERNAL_ERROR", "message": "due to a constraint violation."}
    write(make.feedback(0.9, explanation="old", fallback="budget_exhausted"))
    write(make.feedback(0.9, explanation="old", fallback="budget_exhausted"))

    assert write(make.feedback(0.3)) == [Delivered()]
    (assessment,) = mlflow.assessments[make.trace(1)]
    assert (assessment["feedback"], assessment["rationale"]) == ({"value": 0.3}, "")
    assert (assessment["metadata"]["ragspan.label"], assessment["metadata"]["ragspan.fallback"]) == ("fail", "")


def test_what_others_wrote_is_left_alone(mlflow, write, make):
    human = {"assessment_id": "a-human", "assessment_name": "faithfulness", "feedback": {"value": 1.0}}
    mlflow.assessments[make.trace(1)].append(human)

    write(make.feedback(0.9, record="r1"), make.feedback(0.2, record="r2"))

    assert mlflow.assessments[make.trace(1)][0] == human
    assert [one["feedback"]["value"] for one in mlflow.assessments[make.trace(1)]] == [1.0, 0.9, 0.2]


@pytest.mark.parametrize("has_users", [False, True])
def test_a_trace_that_has_not_arrived_delays_no_other(mlflow, write, make, has_users):
    mlflow.has_users = has_users

    assert write(make.feedback(answer=9), make.feedback()) == [SpanNotFound(), Delivered()]


@pytest.mark.parametrize(
    ("reply", "result"),
    [
        ((400, {"error_code": "INVALID_PARAMETER_VALUE"}), Rejected("http_400")),
        ((405, "Not allowed"), Rejected("http_405")),
        ((500, "oops"), Failed()),
        ("hangs", Failed()),
    ],
    ids=str,
)
def test_what_is_wrong_with_one_feedback_concerns_no_other(mlflow, write, make, reply, result):
    mlflow.script.append(mlflow.hangs if reply == "hangs" else reply)
    timeout = 1.0 if reply == "hangs" else 5.0

    assert write(make.feedback(), make.feedback(metric="other"), timeout=timeout) == [result, Delivered()]


def test_an_answer_that_got_lost_makes_no_second_assessment(mlflow, write, make):
    def lose_the_answer(request):
        mlflow.assessments[make.trace(1)].append(make.assessment(make.feedback()))
        return mlflow.hangs(request)

    mlflow.script.append(lose_the_answer)

    assert write(make.feedback(), timeout=1.0) == [Failed()]
    assert write(make.feedback()) == [Delivered()]
    assert len(mlflow.assessments[make.trace(1)]) == 1


@pytest.mark.parametrize(
    ("reply", "error", "reason"),
    [
        ((404, "<h1>Not Found</h1>"), Unavailable, "http_404"),
        ((200, '{"status": "ok"}'), Unavailable, "not_mlflow"),
        ((204, ""), Unavailable, "not_mlflow"),
        ((500, "oops"), ServerError, "all failed"),
    ],
    ids=["another server", "one that greets", "one that says nothing", "fails"],
)
def test_a_server_that_takes_nothing_fails_as_a_whole(mlflow, write, make, reply, error, reason):
    mlflow.script += [reply] * 4

    with pytest.raises(error, match=reason):
        write(make.feedback(), make.feedback(metric="other"))
