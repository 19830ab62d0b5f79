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
    assert broker.stream("ragspan").messages == 100
    assert sum(worker.figures()["in_flight"] for worker in workers) == len(fleet.judge.asked)
    fleet.backend.status = 200
    if not is_up:
        fleet.backend.start()
    fleet.all_scored(records, once=True)
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
