"""What a worker is told, and what it cannot be told."""

from __future__ import annotations

import pytest

from ragspan.exceptions import ConfigurationError
from ragspan_nats.worker.options import BACK_OFF, WorkerOptions


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("concurrency", 0),
        ("concurrency", 1.5),
        ("concurrency", True),
        ("max_deliveries", 0),
        ("max_ack_pending", 0),
        ("max_in_flight", -1),
        ("ack_wait", 0.5),
        ("ack_wait", float("inf")),
        ("ack_wait", float("nan")),
        ("ack_wait", "30"),
        ("ack_wait", True),
        ("drain_timeout", -0.1),
        ("drain_timeout", None),
        ("export_retry_timeout", 0),
        ("export_retry_timeout", -1.0),
    ],
)
def test_a_figure_out_of_its_range_is_named(name, value):
    with pytest.raises(ConfigurationError, match=rf"^{name} is .*, but should be"):
        WorkerOptions(**{name: value})


def test_the_least_that_is_allowed_is_allowed():
    WorkerOptions(
        concurrency=1,
        ack_wait=1,
        max_deliveries=1,
        max_ack_pending=1,
        drain_timeout=0,
        export_retry_timeout=0.1,
        max_in_flight=0,
    )


@pytest.mark.parametrize(
    ("concurrency", "max_in_flight", "room"), [(16, 0, 256), (100, 0, 400), (16, 20, 20), (16, 4, 16), (1, 1, 1)]
)
def test_there_is_room_for_what_is_scored_and_for_what_waits_for_its_export(concurrency, max_in_flight, room):
    assert WorkerOptions(concurrency=concurrency, max_in_flight=max_in_flight).room == room


def test_a_record_comes_again_later_each_time_and_at_last_at_the_longest_interval():
    options = WorkerOptions()

    assert [options.back_off(number) for number in range(1, 7)] == [*BACK_OFF, BACK_OFF[-1], BACK_OFF[-1]]
