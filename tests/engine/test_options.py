from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from ragspan.engine import ScoringEngine
from ragspan.exceptions import ConfigurationError


@pytest.mark.parametrize(
    ("argument", "value", "allowed"),
    [
        ("queue_size", 0, "a whole number, at least 1"),
        ("queue_size", True, "a whole number, at least 1"),
        ("queue_bytes", 1.5, "a whole number, at least 1"),
        ("concurrency", -1, "a whole number, at least 1"),
        ("drop", "random", "'oldest' or 'newest'"),
        ("sample_rate", 1.01, "a number from 0 to 1"),
        ("sample_rate", math.nan, "a number from 0 to 1"),
        ("sample_rate", "0.5", "a number from 0 to 1"),
        ("metric_timeout", 0, "a number of seconds, more than 0"),
        ("metric_timeout", math.inf, "a number of seconds, more than 0"),
        ("exit_timeout", -0.1, "a number of seconds, 0 or more"),
        ("exit_timeout", None, "a number of seconds, 0 or more"),
        ("name", "", "a text that is not empty"),
    ],
)
def test_a_wrong_value_is_refused_by_name(fakes, argument: str, value: object, allowed: str):
    with pytest.raises(ConfigurationError) as refused:
        ScoringEngine(metrics=[fakes.ConstantMetric()], **{argument: value})

    assert str(refused.value) == f"{argument} is {value!r}, but should be {allowed}"


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("faithfulness", "metrics is 'faithfulness', but should be a list"),
        (
            [SimpleNamespace(name="m")],
            r"metrics\[0\] is a SimpleNamespace, but should be an object with a score method",
        ),
        ([SimpleNamespace(score=print)], r"metrics\[0\].name is None, but should be lower case"),
        (
            [SimpleNamespace(score=print, name="My Metric")],
            r"metrics\[0\].name is 'My Metric', but should be lower case",
        ),
    ],
)
def test_something_that_is_no_metric_is_refused(metrics: object, message: str):
    with pytest.raises(ConfigurationError, match=message):
        ScoringEngine(metrics=metrics)  # type: ignore[arg-type]


def test_a_metric_class_in_place_of_a_metric_is_refused(fakes):
    with pytest.raises(ConfigurationError, match=r"metrics\[0\] is the class ConstantMetric"):
        ScoringEngine(metrics=[fakes.ConstantMetric])


def test_two_metrics_of_one_name_are_refused(fakes):
    with pytest.raises(ConfigurationError, match=r"metrics\[1\].name is 'constant', but should be unlike"):
        ScoringEngine(metrics=[fakes.ConstantMetric(), fakes.ConstantMetric()])


@pytest.mark.parametrize("method", ["open", "emit", "flush", "shutdown"])
def test_an_emitter_that_lacks_a_method_is_refused(fakes, method: str):
    emitter = fakes.ListEmitter()
    setattr(emitter, method, None)

    with pytest.raises(ConfigurationError, match=r"emitters\[0\] is a ListEmitter, but should be an object with the"):
        ScoringEngine(metrics=[], emitters=[emitter])


@pytest.mark.parametrize("wait", [-1, math.nan, None])
def test_an_emitter_that_waits_for_no_time_at_all_is_refused(fakes, wait: object):
    with pytest.raises(ConfigurationError, match=r"emitters\[0\].score_wait is .*, but should be a number of seconds"):
        ScoringEngine(metrics=[], emitters=[fakes.ListEmitter(score_wait=wait)])


def test_the_environment_can_be_wrong_too(fakes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RAGSPAN_ENABLED", "maybe")

    with pytest.raises(ConfigurationError, match="RAGSPAN_ENABLED is 'maybe'"):
        ScoringEngine(metrics=[fakes.ConstantMetric()])


def test_lists_that_change_later_do_not_change_the_engine(fakes, make_engine):
    emitters = [fakes.ListEmitter()]
    engine = ScoringEngine(metrics=[fakes.ConstantMetric()], emitters=emitters)
    emitter = emitters.pop()
    with engine:
        engine.submit(fakes.a_record())

    assert emitter.journal == ["open", "emit", "shutdown"]
