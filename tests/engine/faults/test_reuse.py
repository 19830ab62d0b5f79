"""One engine after another in one process, as the tests of an application make them."""

from __future__ import annotations

import threading

import pytest

import ragspan
from ragspan.defaults import default_engine, set_default_engine
from ragspan.telemetry import OTelEmitter
from ragspan.testing import FakeJudge, InMemoryTelemetry


def test_each_engine_scores_its_own_and_leaves_nothing_behind(fakes, make_engine, assert_conserved):
    before = set(threading.enumerate())
    for number in range(5):
        telemetry = InMemoryTelemetry()
        metric = ragspan.metrics.ContextAdherence(FakeJudge(), polls=1)
        engine = make_engine(
            metric,
            fakes.ThreadMetric(lambda _: None),
            emitters=[OTelEmitter(tracer_provider=telemetry.tracer_provider)],
            meter_provider=telemetry.meter_provider,
        )
        engine.submit(fakes.a_record(name=f"answer {number}"))

        assert engine.shutdown(fakes.PATIENCE).abandoned == 0
        assert [span.name for span in telemetry.spans()] == [f"invoke_workflow answer {number}"]
        assert assert_conserved(engine).finished == 1
    threads = [thread for thread in threading.enumerate() if thread not in before]
    for thread in threads:
        thread.join(fakes.PATIENCE)
    assert not [thread.name for thread in threads if thread.is_alive()]


@pytest.fixture
def own_default_engine(monkeypatch):
    """The default engine is the test's own, and the one before is put back."""
    previous = set_default_engine(None)
    yield
    set_default_engine(previous)


@pytest.mark.usefixtures("own_default_engine")
def test_the_default_engine_can_be_replaced_while_answers_are_given(fakes, make_engine, assert_conserved):
    first, second = make_engine(fakes.ConstantMetric()), make_engine(fakes.ConstantMetric())
    for engine, answers in ((first, 3), (second, 2)):
        set_default_engine(engine)
        for _ in range(answers):
            with ragspan.capture(question="Why?") as answer:
                answer.contexts, answer.response = ["Because."], "Because."

    assert first.flush(fakes.PATIENCE)
    assert second.flush(fakes.PATIENCE)
    assert default_engine() is second
    assert [assert_conserved(engine).finished for engine in (first, second)] == [3, 2]
