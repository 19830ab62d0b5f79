"""The benchmark of the slowest answers runs, scores what it answers and measures something."""

from __future__ import annotations

import pytest
from brokers import server_program

pytestmark = [pytest.mark.slow, pytest.mark.alone]

MODEL_MS = 30
"""What the model waits before it answers."""
_ROUNDING = 0.01  # the machine's clock ticks a hundred times a second


@pytest.fixture(scope="module")
def measured(figures_of):
    return figures_of("tail_latency.py", "--rate", 40)


@pytest.fixture(scope="module")
def published(figures_of):
    """The same with a broker in the place of the engine."""
    server_program()
    return figures_of("tail_latency.py", "--rate", 40, "--mode", "nats")


def test_spans_are_exported_by_the_application_and_by_the_helper(measured):
    assert [summary["mode"] for summary in measured["summaries"]] == ["application", "helper"]
    assert [(pair["off"]["mode"], pair["on"]["mode"]) for pair in measured["pairs"]] == [
        ("off", "application"),
        ("off", "helper"),
    ]


def test_everything_is_scored_and_every_span_arrives(measured):
    for pair in measured["pairs"]:
        off, on = pair["off"], pair["on"]
        assert off["scored"] == 0
        assert off["spans"] == off["requests"] > 0
        assert on["scored"] == on["requests"] == off["requests"]
        assert on["spans"] == on["requests"] * 4


def test_a_ratio_is_that_of_the_two_percentiles(measured):
    for summary, pair in zip(measured["summaries"], measured["pairs"], strict=True):
        assert MODEL_MS < pair["off"]["p50_ms"] <= pair["off"]["p99_ms"]
        assert MODEL_MS < pair["on"]["p50_ms"] <= pair["on"]["p99_ms"]
        assert summary["ratio"] == pytest.approx(pair["on"]["p99_ms"] / pair["off"]["p99_ms"])


def test_processor_time_is_told_apart(measured):
    for pair in measured["pairs"]:
        assert 0 < pair["on"]["application_share"] < pair["on"]["machine_share"] <= 1 + _ROUNDING
        assert pair["on"]["helper_share"] > 0 == pair["off"]["helper_share"]


def test_with_a_broker_every_record_is_in_the_stream_and_none_is_scored(published):
    (pair,) = published["pairs"]
    off, on = pair["off"], pair["on"]
    assert (off["mode"], on["mode"]) == ("off", "nats")
    assert off["published"] == 0
    assert on["published"] == on["requests"] == off["requests"] > 0
    assert on["scored"] == 0
    assert on["spans"] == on["requests"]
    assert on["helper_share"] == 0


def test_each_mode_has_its_target(measured, published):
    assert measured["targets"] == published["targets"] == {"application": 1.15, "helper": 1.15, "nats": 1.1}
