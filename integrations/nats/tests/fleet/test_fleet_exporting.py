"""A tracing backend that is away, hangs, or refuses something: nothing is acknowledged before it has the scores."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("is_up", [False, True], ids=["away", "out of order"])
def test_scores_wait_for_a_backend_and_are_judged_and_exported_once(make_fleet, broker, is_up):
    fleet = make_fleet(broker, backend_is_up=is_up)
    fleet.backend.status = 503
    workers = fleet.start(2, "--ack-wait", 2.5, "--concurrency", 8)
    records = fleet.publish(100)
    fleet.until(lambda: len(fleet.judge.asked) >= 16, what="both hands full")
    if is_up:
        fleet.until(lambda: fleet.backend.offered > 2, what="a second try")
    fleet.pause(4)
    # Before an export was taken a worker scores no more than its hands hold; after a failure one at a time, with pauses.
    assert len(fleet.judge.asked) < 24
    assert broker.stream("ragspan").messages == 100
    assert sum(worker.figures()["in_flight"] for worker in workers) == len(fleet.judge.asked)
    fleet.backend.status = 200
    if not is_up:
        fleet.backend.start()
    fleet.all_scored(records, once=True)
    assert len(fleet.judge.asked) == len(records)


def test_records_that_come_again_and_again_because_of_the_backend_cost_few_judge_calls(make_fleet, broker):
    """Thirty records that nobody takes are not judged once for each of their deliveries."""
    fleet = make_fleet(broker, backend_is_up=False)
    options = ("--concurrency", 8, "--export-retry-timeout", 1, "--max-deliveries", 9)
    worker = fleet.worker(*options, environment={"OTEL_EXPORTER_OTLP_TIMEOUT": "1"})
    records = fleet.publish(30)
    fleet.until(lambda: worker.figures()["nacked"].get("export_failed", 0) >= 8, what="records to be given back")
    fleet.pause(12)  # the first pause before a record comes again takes 5 s

    assert len(fleet.judge.asked) < len(records)
    fleet.backend.start()
    fleet.all_scored(records)


def test_a_backend_that_hangs_for_longer_than_ack_wait_gets_everything(fleet):
    fleet.worker("--ack-wait", 2.5, environment={"OTEL_EXPORTER_OTLP_TIMEOUT": "2"})
    fleet.backend.hold_replies()
    records = fleet.publish(20)
    fleet.until(lambda: fleet.backend.offered > 1, what="a second try")
    fleet.pause(2)
    assert fleet.broker.stream("ragspan").messages == 20
    fleet.backend.release()
    fleet.all_scored(records, unmarked=True)
    assert len(fleet.judge.asked) == len(records)


@pytest.mark.parametrize("exporter", ["otlp", "ragspan_otlp"])
def test_an_answer_that_the_backend_refuses_for_good_becomes_a_dead_letter_and_holds_up_no_other(fleet, exporter):
    """Also where the exporter has a patience of its own."""
    fleet.backend.refused = "record-3"
    settings = {"OTEL_TRACES_EXPORTER": exporter}
    fleet.worker("--export-retry-timeout", 30, "--max-deliveries", 1, environment=settings)
    records = fleet.publish(10)
    fleet.until(lambda: len(fleet.backend.records()) == 9, what="the others to be exported")
    fleet.until_empty()

    ends = fleet.ends(records)
    assert ends.dead == {"record-3": "export_failed"}
    assert set(ends.scored) == set(records) - {"record-3"}
    assert not ends.again


def test_a_worker_scores_no_more_than_its_hands_hold_before_the_backend_has_taken_something(fleet):
    fleet.backend.hold_replies()
    worker = fleet.worker("--concurrency", 8)
    records = fleet.publish(100)
    fleet.until(lambda: fleet.backend.offered, what="an export")
    fleet.pause(1)

    assert fleet.in_work() == len(fleet.judge.asked) == worker.figures()["in_flight"] == 8
    fleet.backend.release()
    fleet.all_scored(records)
