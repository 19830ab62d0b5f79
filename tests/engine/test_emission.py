"""What an emitter does reaches neither the worker nor the other emitters."""

from __future__ import annotations

import pytest

from ragspan.records import SpanAnchor

SPAN, OTHER = SpanAnchor(trace_id=1, span_id=2), SpanAnchor(trace_id=3, span_id=4)


@pytest.mark.parametrize("error", [ValueError("secret"), SystemExit(1), KeyboardInterrupt()])
def test_what_an_emitter_raises_is_counted_and_reaches_nobody(fakes, make_engine, caplog, error: BaseException):
    good = fakes.ListEmitter(span=SPAN)
    engine = make_engine(fakes.ConstantMetric(), emitters=[fakes.RaisingEmitter(error), good])
    for _ in range(2):
        engine.submit(fakes.a_record())

    assert not engine.flush(fakes.PATIENCE)
    assert sorted(good.journal) == ["emit", "emit", "flush", "start", "start"]
    assert good.scored[0].span == SPAN
    assert engine.stats().finished == 2
    assert engine.stats().errors == {"emitter_start": 1, "emitter": 2}
    assert f"RaisingEmitter failed with {type(error).__name__}" in caplog.messages
    assert "secret" not in caplog.text
    engine.shutdown(fakes.PATIENCE)
    assert engine.stats().errors == {"emitter_start": 1, "emitter": 3}
    assert good.journal[-1] == "shutdown"


def test_the_first_span_that_an_emitter_names_is_the_answers(fakes, make_engine):
    emitters = [fakes.ListEmitter(span=span) for span in (None, SPAN, OTHER)]
    engine = make_engine(fakes.ConstantMetric(), emitters=emitters)
    fakes.score(engine)

    assert {emitter.scored[0].span for emitter in emitters} == {SPAN}


@pytest.mark.parametrize("answer", [None, object()])
def test_an_emitter_that_starts_with_something_else_is_left_out(fakes, make_engine, answer):
    wrong, good = fakes.ListEmitter(), fakes.ListEmitter()
    wrong.start = lambda _: answer
    engine = make_engine(fakes.ConstantMetric(), emitters=[wrong, good])
    fakes.score(engine)

    assert (len(wrong.scored), len(good.scored)) == (0, 1)
    assert engine.stats().errors == {"emitter_start": 1}
