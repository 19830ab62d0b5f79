"""What becomes of a batch at MLflow, and of what is there already."""

import pytest

from ragspan.delivery import Delivered, Failed, Rejected, SpanNotFound, Unavailable
from ragspan.delivery.http import ServerError

MANY = "/api/3.0/mlflow/traces/batchGetInfos"


def values(mlflow, trace_id):
    return {one["assessment_name"]: one["feedback"].get("value") for one in mlflow.assessments[trace_id]}


def is_write(method, path):
    return method == "POST" and path.endswith("/assessments")


@pytest.mark.parametrize("parallel", [1, 4])
def test_feedback_is_created(mlflow, write, make, parallel):
    items = [make.feedback(number / 100, metric=f"metric{number}", answer=1 + number % 2) for number in range(40)]

    assert write(*items, parallel=parallel) == [Delivered()] * 40
    assert values(mlflow, make.trace(1)) == {item.name: item.value for item in items[::2]}
    assert values(mlflow, make.trace(2)) == {item.name: item.value for item in items[1::2]}


@pytest.mark.parametrize("keeps_ids", [True, False])
def test_a_repeat_makes_no_second_assessment_and_a_new_value_replaces_the_old_one(mlflow, write, make, keeps_ids):
    mlflow.keeps_ids = keeps_ids
    first = make.feedback(0.9, explanation="old")

    assert write(first) == write(first) == [Delivered()]
    assert [method for method, _ in mlflow.calls("/assessments")] == ["POST"]
    assert write(make.feedback(0.3, explanation="new")) == [Delivered()]
    (assessment,) = mlflow.assessments[make.trace(1)]
    assert (assessment["feedback"], assessment["rationale"]) == ({"value": 0.3}, "new")
    assert assessment["metadata"]["ragspan.label"] == "fail"


def test_what_others_wrote_is_left_alone(mlflow, write, make):
    human = {
        "assessment_id": "a-human",
        "assessment_name": "faithfulness",
        "source": {"source_type": "HUMAN", "source_id": "ann"},
        "feedback": {"value": 1.0},
    }
    mlflow.assessments[make.trace(1)].append(human)

    write(make.feedback(0.9, record="r1"), make.feedback(0.2, record="r2"))

    assert mlflow.assessments[make.trace(1)][0] == human
    assert [one["feedback"]["value"] for one in mlflow.assessments[make.trace(1)]] == [1.0, 0.9, 0.2]


@pytest.mark.parametrize(
    ("kind", "looks"), [({}, 2), ({"has_users": True}, 2), ({"answers_for_many": False}, 1)], ids=str
)
def test_a_trace_that_has_not_arrived_delays_no_other(mlflow, make_writer, write, make, kind, looks):
    """A server with users refuses both looks, at all traces and at the missing one, with 403. An older one has only the second."""
    vars(mlflow).update(kind)
    writer = make_writer()

    assert write(make.feedback(answer=9), make.feedback(), by=writer) == [SpanNotFound(), Delivered()]
    assert write(make.feedback(answer=2), by=writer) == [Delivered()]
    assert len(mlflow.calls(MANY)) == looks


@pytest.mark.parametrize(
    ("reply", "result"),
    [
        ((404, {"error_code": "RESOURCE_DOES_NOT_EXIST"}), SpanNotFound()),  # deleted in between
        ((400, {"error_code": "INVALID_PARAMETER_VALUE"}), Rejected("http_400")),
        ((403, "Permission denied"), Rejected("http_403")),
        ((500, "oops"), Failed()),
        ("hangs", Failed()),
    ],
    ids=str,
)
def test_what_is_wrong_with_one_feedback_concerns_no_other(mlflow, write, make, reply, result):
    mlflow.script += [None, mlflow.hangs if reply == "hangs" else reply]
    timeout = 1.0 if reply == "hangs" else 5.0

    assert write(make.feedback(), make.feedback(metric="other"), timeout=timeout) == [result, Delivered()]


def test_a_server_that_fails_again_and_again_is_left_alone(mlflow, write, make):
    mlflow.answer = lambda method, path: (500, "oops") if is_write(method, path) else None

    with pytest.raises(ServerError):
        write(*(make.feedback(metric=f"metric{number}") for number in range(10)))
    assert len(mlflow.calls("/assessments")) == 3


def test_another_process_that_was_faster_makes_no_second_assessment(mlflow, write, make):
    """It creates the same between our look and our own creation."""
    mlflow.before_a_creation = lambda assessment: mlflow.assessments[make.trace(1)].append(dict(assessment))

    assert [write(make.feedback()), write(make.feedback())] == [[Failed()], [Delivered()]]
    assert len(mlflow.assessments[make.trace(1)]) == 1


def test_an_answer_that_got_lost_makes_no_second_assessment(mlflow, write, make):
    def lose_the_answer(request):
        mlflow.assessments[make.trace(1)].append(make.assessment(make.feedback()))
        return mlflow.hangs(request)

    mlflow.script += [None, lose_the_answer]

    assert write(make.feedback(), timeout=1.0) == [Failed()]
    assert write(make.feedback()) == [Delivered()]
    assert len(mlflow.assessments[make.trace(1)]) == 1


@pytest.mark.parametrize(
    ("replies", "error", "reason"),
    [
        (["hangs"], Unavailable, "timeout"),
        ([(404, "<h1>Not Found</h1>")] * 2, Unavailable, "http_404"),  # another server
        ([(500, {"error_code": "INTERNAL_ERROR"})], ServerError, "http_500"),
    ],
    ids=["hangs", "another server", "fails"],
)
def test_a_server_that_does_not_say_what_it_has_fails_as_a_whole(mlflow, write, make, replies, error, reason):
    mlflow.script += [mlflow.hangs if reply == "hangs" else reply for reply in replies]

    with pytest.raises(error, match=reason):
        write(make.feedback(), timeout=1.0 if replies == ["hangs"] else 5.0)
