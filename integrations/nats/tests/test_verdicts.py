"""What becomes of a record with these outcomes, and of the records after it."""

from __future__ import annotations

import pytest
from worker_parts import OUTAGE, a_record, scored

from ragspan.outcomes import MetricFailure, NotApplicable, Score
from ragspan_nats.consumer import ACKNOWLEDGE
from ragspan_nats.scoring import verdict_on
from ragspan_nats.settings import BACK_OFF, WorkerOptions

SCORE = Score(value=0.5)
SILENT = NotApplicable(reason="no_contexts")
INVALID = MetricFailure(error_type="InvalidVerdict", message="no JSON")
TIMEOUT = MetricFailure(error_type="timeout", message="no outcome within 60 s")
OPTIONS = WorkerOptions(max_deliveries=3)


def verdict(*outcomes, number=1, options=OPTIONS):
    named = {f"metric-{place}": outcome for place, outcome in enumerate(outcomes)}
    return verdict_on(scored(a_record(), named), number, options)


@pytest.mark.parametrize(
    "outcomes",
    [(SCORE,), (SCORE, INVALID), (INVALID,), (SILENT, SILENT), (SCORE, TIMEOUT), ()],
    ids=[
        "scores",
        "a failure among them",
        "nothing but a failure",
        "nothing applies",
        "one metric too slow",
        "no metrics",
    ],
)
@pytest.mark.parametrize("number", [1, 3, 9])
def test_a_record_is_done_with_unless_the_service_failed(outcomes, number):
    assert verdict(*outcomes, number=number) is ACKNOWLEDGE


@pytest.mark.parametrize(
    "outcomes",
    [(OUTAGE,), (SCORE, OUTAGE), (INVALID, OUTAGE), (SILENT, OUTAGE), (TIMEOUT, TIMEOUT), (SILENT, TIMEOUT)],
    ids=["all", "some", "beside a failure", "beside silence", "all too slow", "all that apply too slow"],
)
def test_a_record_comes_again_when_the_service_failed(outcomes):
    found = verdict(*outcomes)

    assert (found.ending, found.reason) == ("nacked", "judge_outage")


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 20])
def test_it_comes_again_later_each_time(number):
    found = verdict(OUTAGE, number=number, options=WorkerOptions(max_deliveries=100))

    assert found.delay == BACK_OFF[min(number, len(BACK_OFF)) - 1]
    assert sorted(BACK_OFF) == list(BACK_OFF)


@pytest.mark.parametrize("number", [3, 4])
def test_the_last_delivery_keeps_the_scores_that_are_there(number):
    assert verdict(SCORE, OUTAGE, number=number) is ACKNOWLEDGE


@pytest.mark.parametrize("number", [3, 4])
def test_the_last_delivery_without_any_score_is_put_aside(number):
    found = verdict(SILENT, OUTAGE, INVALID, number=number)

    assert (found.ending, found.reason) == ("dead_lettered", "judge_outage")


def test_the_detail_names_the_kinds_of_errors_and_no_text():
    other = MetricFailure(error_type="RateLimitError", message="prompt: the secret", outage=True)

    detail = verdict(OUTAGE, other, OUTAGE, SCORE).detail

    assert detail == "3 of 4 metrics failed: APIConnectionError, RateLimitError"


def test_a_detail_is_bounded():
    many = [MetricFailure(error_type=f"Error{number:095}", message="", outage=True) for number in range(50)]

    assert len(verdict(*many).detail) <= 200


@pytest.mark.parametrize(("given", "room"), [({}, 256), ({"concurrency": 100}, 400)])
def test_there_is_room_for_what_is_scored_and_for_what_waits_for_its_export(given, room):
    assert WorkerOptions(**given).room == room
