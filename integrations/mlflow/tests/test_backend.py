import pytest
from opentelemetry import context

from ragspan.delivery import Delivered, Failed, Rejected, SpanNotFound, Unavailable
from ragspan.delivery.http import ServerError
from ragspan.telemetry import is_suppressed, suppressed


def test_feedback_is_created(mlflow, connect, make):
    batch = [make.feedback(0.9), make.feedback(0.4, metric="completeness"), make.feedback(0.2, answer=2)]

    assert connect(mlflow).write(batch) == [Delivered()] * 3
    assert mlflow.values(make.trace(1)) == {"faithfulness": 0.9, "completeness": 0.4}
    assert mlflow.values(make.trace(2)) == {"faithfulness": 0.2}


def test_several_requests_may_be_under_way_at_once(mlflow, connect, make):
    batch = [make.feedback(number / 100, metric=f"metric{number}") for number in range(40)]

    assert connect(mlflow, parallel=4).write(batch) == [Delivered()] * 40
    assert mlflow.values(make.trace(1)) == {item.name: item.value for item in batch}


@pytest.mark.parametrize("keeps_ids", [True, False])
def test_a_repeat_makes_no_second_assessment(mlflow, connect, make, keeps_ids):
    mlflow.keeps_ids = keeps_ids
    connect(mlflow).write([make.feedback(0.9)])

    assert connect(mlflow).write([make.feedback(0.9)]) == [Delivered()]
    assert len(mlflow.assessments[make.trace(1)]) == 1
    assert mlflow.methods() == ["POST"]


@pytest.mark.parametrize("keeps_ids", [True, False])
def test_a_new_value_replaces_the_old_one(mlflow, connect, make, keeps_ids):
    mlflow.keeps_ids = keeps_ids
    connect(mlflow).write([make.feedback(0.9, explanation="old")])

    assert connect(mlflow).write([make.feedback(0.3, explanation="new")]) == [Delivered()]
    (assessment,) = mlflow.assessments[make.trace(1)]
    assert (assessment["feedback"], assessment["rationale"]) == ({"value": 0.3}, "new")
    assert assessment["metadata"]["ragspan.label"] == "fail"


def test_two_answers_in_one_trace_have_their_own_scores(mlflow, connect, make):
    connect(mlflow).write([make.feedback(0.9, record="r1"), make.feedback(0.2, record="r2")])

    assert [item["feedback"]["value"] for item in mlflow.assessments[make.trace(1)]] == [0.9, 0.2]


def test_what_others_wrote_is_left_alone(mlflow, connect, make):
    human = {
        "assessment_id": "a-human",
        "assessment_name": "faithfulness",
        "source": {"source_type": "HUMAN", "source_id": "ann"},
        "feedback": {"value": 1.0},
    }
    mlflow.assessments[make.trace(1)].append(human)

    connect(mlflow).write([make.feedback(0.2)])

    assert mlflow.assessments[make.trace(1)][0] == human
    assert len(mlflow.assessments[make.trace(1)]) == 2


def test_a_trace_that_has_not_arrived_holds_up_no_other(mlflow, connect, make):
    results = connect(mlflow).write([make.feedback(answer=9), make.feedback(answer=1)])

    assert results == [SpanNotFound(), Delivered()]


def test_a_server_with_users_hides_which_trace_is_missing(mlflow, connect, make):
    """It refuses the whole request with 403, and says 403 of the single trace, too."""
    mlflow.has_users = True

    results = connect(mlflow).write([make.feedback(answer=9), make.feedback(answer=1)])

    assert results == [SpanNotFound(), Delivered()]


def test_a_server_with_users_is_asked_for_all_traces_again(mlflow, connect, make):
    mlflow.has_users = True
    connection = connect(mlflow)
    connection.write([make.feedback(answer=9)])
    mlflow.calls.clear()

    connection.write([make.feedback(answer=1), make.feedback(answer=2)])

    assert [path for method, path in mlflow.calls if "assessments" not in path] == [
        "/api/3.0/mlflow/traces/batchGetInfos"
    ]


def test_an_older_server_is_asked_for_one_trace_after_the_other(mlflow, connect, make):
    mlflow.answers_for_many = False
    connection = connect(mlflow)

    assert connection.write([make.feedback(answer=9), make.feedback(answer=1)]) == [SpanNotFound(), Delivered()]
    assert connection.write([make.feedback(answer=2)]) == [Delivered()]
    assert [path for _, path in mlflow.calls].count("/api/3.0/mlflow/traces/batchGetInfos") == 1


def test_a_trace_that_is_deleted_in_between_is_not_there_yet(mlflow, connect, make):
    mlflow.script += [None, (404, {"error_code": "RESOURCE_DOES_NOT_EXIST"})]

    assert connect(mlflow).write([make.feedback()]) == [SpanNotFound()]


def test_who_may_read_but_not_write_is_refused(mlflow, connect, make):
    mlflow.read_only = True

    assert connect(mlflow).write([make.feedback()]) == [Rejected("http_403")]


def test_one_refusal_concerns_no_other(mlflow, connect, make):
    mlflow.script += [None, (400, {"error_code": "INVALID_PARAMETER_VALUE"})]

    results = connect(mlflow).write([make.feedback(), make.feedback(metric="completeness")])

    assert results == [Rejected("http_400"), Delivered()]


def test_one_failure_concerns_no_other(mlflow, connect, make):
    mlflow.script += [None, (500, "oops")]

    results = connect(mlflow).write([make.feedback(), make.feedback(metric="completeness")])

    assert results == [Failed(), Delivered()]


def test_a_server_that_fails_again_and_again_is_left_alone(mlflow, connect, make):
    mlflow.answer = lambda method, path: (500, "oops") if path.endswith("/assessments") else None
    batch = [make.feedback(metric=f"metric{number}") for number in range(10)]

    with pytest.raises(ServerError):
        connect(mlflow).write(batch)

    assert len(mlflow.methods()) == 3


def test_an_item_that_is_never_answered_holds_up_no_other(mlflow, connect, make):
    hung = iter([True])
    mlflow.answer = lambda method, path: (
        mlflow.hang() if method == "POST" and "/tr-" in path and next(hung, 0) else None
    )

    results = connect(mlflow, timeout=0.1).write([make.feedback(), make.feedback(metric="completeness")])

    assert results == [Failed(), Delivered()]


def test_another_process_that_was_faster_makes_no_second_assessment(mlflow, connect, make):
    """It creates the same between our look and our own creation."""
    mlflow.before_a_creation = lambda assessment: mlflow.assessments[make.trace(1)].append(dict(assessment))
    connection = connect(mlflow)

    assert connection.write([make.feedback()]) == [Failed()]
    assert connection.write([make.feedback()]) == [Delivered()]
    assert len(mlflow.assessments[make.trace(1)]) == 1


def test_an_answer_that_got_lost_makes_no_second_assessment(mlflow, connect, make):
    connection = connect(mlflow, timeout=0.1)
    mlflow.answer = lambda method, path: lose_the_answer(mlflow, make) if method == "POST" and "/tr-" in path else None
    assert connection.write([make.feedback()]) == [Failed()]
    mlflow.answer = None

    assert connection.write([make.feedback()]) == [Delivered()]
    assert len(mlflow.assessments[make.trace(1)]) == 1


def lose_the_answer(mlflow, make):
    mlflow.assessments[make.trace(1)].append(make.assessment(make.feedback()))
    return mlflow.hang()


def test_a_server_that_gives_no_sign_of_life_is_unavailable(mlflow, connect, make):
    mlflow.answer = lambda method, path: mlflow.hang()

    with pytest.raises(Unavailable, match="timeout"):
        connect(mlflow, timeout=0.1).write([make.feedback()])


def test_a_server_of_another_kind_is_unavailable(mlflow, connect, make):
    mlflow.answer = lambda method, path: (404, "<h1>Not Found</h1>")

    with pytest.raises(Unavailable, match="http_404"):
        connect(mlflow).write([make.feedback()])


def test_a_server_that_cannot_tell_what_it_has_fails_as_a_whole(mlflow, connect, make):
    mlflow.script += [(500, {"error_code": "INTERNAL_ERROR"})]

    with pytest.raises(ServerError, match="http_500"):
        connect(mlflow).write([make.feedback()])


def test_requests_on_other_threads_are_suppressed_as_well(mlflow, connect, make, monkeypatch):
    seen = []
    connection = connect(mlflow, parallel=4)
    call = connection.client.call
    monkeypatch.setattr(
        connection.client, "call", lambda *given, **named: seen.append(is_suppressed()) or call(*given, **named)
    )

    with suppressed():
        connection.write([make.feedback(metric=f"metric{number}") for number in range(20)])

    assert seen == [True] * 21
    assert not is_suppressed(context.get_current())
