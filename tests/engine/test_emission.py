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
