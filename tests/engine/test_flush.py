from __future__ import annotations

import math
import time

import pytest

TIMEOUT = 0.2


@pytest.fixture
def busy(fakes, make_engine):
    """Makes an engine that has a record in work with this metric, and an emitter that keeps what it is told."""

    def make(kind: str):
        metric = getattr(fakes, kind)()
        emitter = fakes.ListEmitter()
        engine = make_engine(metric, emitters=[emitter])
        engine.submit(fakes.a_record())
        metric.wait_until_started()
        return engine, metric, emitter

    return make


@pytest.mark.parametrize("kind", ["HangingMetric", "BlockingTheLoop"])
def test_flush_waits_for_scores_and_keeps_its_time_when_a_metric_hangs(fakes, busy, kind: str):
    engine, metric, _ = busy(kind)
    began = time.monotonic()
    flushed, took = engine.flush(TIMEOUT), time.monotonic() - began
    metric.release()

    assert not flushed
    assert took < TIMEOUT + fakes.GRACE
    assert engine.flush(math.inf)


def test_flush_and_shutdown_keep_their_time_when_an_emitter_hangs(fakes, make_engine, caplog):
    hanging, other = fakes.HangingEmitter(), fakes.ListEmitter()
    engine = make_engine(fakes.ConstantMetric(), emitters=[hanging, other])
    began = time.monotonic()

    assert not engine.flush(TIMEOUT)
    assert time.monotonic() - began < TIMEOUT + fakes.GRACE
    began = time.monotonic()
    assert engine.shutdown(TIMEOUT).abandoned == 0
    assert time.monotonic() - began < TIMEOUT + fakes.GRACE
    assert other.journal == ["flush", "shutdown"]
    assert caplog.messages == ["HangingEmitter was not done in time: spans or scores that it still held may be lost"]
