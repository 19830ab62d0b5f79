from __future__ import annotations

import time

import pytest

from ragspan.records import SpanAnchor

SPAN = SpanAnchor(trace_id=1, span_id=2)


@pytest.mark.parametrize("error", [ValueError("secret"), SystemExit(1), KeyboardInterrupt()])
def test_what_an_emitter_raises_is_counted_and_reaches_nobody(fakes, make_engine, caplog, error: BaseException):
    good = fakes.ListEmitter(span=SPAN)
    engine = make_engine(fakes.ConstantMetric(), emitters=[fakes.RaisingEmitter(error), good])
    for _ in range(2):
        engine.submit(fakes.a_record())

    assert not engine.flush(fakes.PATIENCE)
    assert sorted(good.journal) == ["emit", "emit", "flush", "start", "start"]
    assert good.scored[0].span == SPAN
    assert engine.stats().scored == 2
    assert engine.stats().errors == {"emitter_start": 1, "emitter": 2}
    assert f"RaisingEmitter failed with {type(error).__name__}" in caplog.messages
    assert "secret" not in caplog.text


def test_an_emitter_that_raises_at_shutdown_is_counted(fakes, make_engine):
    engine = make_engine(emitters=[fakes.RaisingEmitter(ValueError())])
    engine.shutdown(fakes.PATIENCE)

    assert engine.stats().errors == {"emitter": 1}


def test_something_that_is_no_span_is_none(fakes, make_engine):
    emitter = fakes.ListEmitter(span="00-01-02-03")
    engine = make_engine(fakes.ConstantMetric(), emitters=[emitter, fakes.ListEmitter(span=SPAN)])
    engine.submit(fakes.a_record())

    assert engine.flush(fakes.PATIENCE)
    assert emitter.scored[0].span == SPAN


def test_flush_asks_every_emitter_even_if_one_has_not_sent_all(fakes, make_engine):
    unfinished, finished = fakes.ListEmitter(), fakes.ListEmitter()
    unfinished.flush = lambda timeout: False
    engine = make_engine(fakes.ConstantMetric(), emitters=[unfinished, finished])

    assert not engine.flush(fakes.PATIENCE)
    assert finished.journal == ["flush"]


def test_emitters_are_told_how_much_time_is_left(fakes, make_engine):
    told: list[float] = []
    emitter = fakes.ListEmitter()
    emitter.flush = lambda timeout: told.append(timeout) is None
    engine = make_engine(fakes.ConstantMetric(), emitters=[emitter])

    assert engine.flush(5.0)
    assert 4.0 < told[0] <= 5.0


@pytest.mark.parametrize("timeout", [0, 0.2, -1])
def test_flush_keeps_its_time_when_an_emitter_hangs(fakes, make_engine, timeout: float):
    hanging, other = fakes.HangingEmitter(), fakes.ListEmitter()
    engine = make_engine(fakes.ConstantMetric(), emitters=[hanging, other])
    began = time.monotonic()

    assert not engine.flush(timeout)
    assert time.monotonic() - began < max(timeout, 0) + fakes.GRACE
    assert other.journal == ["flush"]


def test_an_emitter_that_hangs_holds_a_bounded_number_of_threads(fakes, make_engine):
    hanging = fakes.HangingEmitter()
    engine = make_engine(fakes.ConstantMetric(), emitters=[hanging])
    for _ in range(10):
        assert not engine.flush(0)

    assert len(hanging.journal) == 2


def test_flush_is_done_when_an_emitter_has_come_back(fakes, make_engine):
    hanging = fakes.HangingEmitter()
    engine = make_engine(fakes.ConstantMetric(), emitters=[hanging])
    assert not engine.flush(0)
    hanging.release()

    assert engine.flush(fakes.PATIENCE)


def test_shutdown_keeps_its_time_when_an_emitter_hangs(fakes, make_engine):
    engine = make_engine(fakes.ConstantMetric(), emitters=[fakes.HangingEmitter()])
    engine.submit(fakes.a_record())
    began = time.monotonic()
    report = engine.shutdown(0.2)

    assert time.monotonic() - began < 0.2 + fakes.GRACE
    assert report.abandoned == 0
