"""`await engine.score(record)`."""

from __future__ import annotations

import asyncio

import pytest

from ragspan import Dropped, ScoredRecord
from ragspan.engine import EngineStats
from ragspan.outcomes import Score


def test_a_record_comes_back_with_its_outcomes_when_the_emitters_have_it(fakes, make_engine):
    emitter = fakes.ListEmitter()
    engine = make_engine(fakes.ConstantMetric(0.5), emitters=[emitter])
    record = fakes.a_record()

    scored = asyncio.run(engine.score(record))

    assert isinstance(scored, ScoredRecord)
    assert scored.record is record
    assert scored.outcomes == {"constant": Score(value=0.5)}
    assert emitter.scored == [scored]
    assert engine.stats().finished == engine.stats().submitted == 1


def test_a_full_queue_neither_refuses_nor_evicts_what_is_awaited(fakes, make_engine):
    metric = fakes.HangingMetric()
    engine = make_engine(metric, concurrency=1, queue_size=1)
    engine.submit(fakes.a_record())
    metric.wait_until_started()
    for _ in range(3):
        engine.submit(fakes.FakeCapture(fakes.a_record))

    async def score() -> list[ScoredRecord | Dropped]:
        scoring = [asyncio.create_task(engine.score(fakes.a_record())) for _ in range(5)]
        await asyncio.sleep(0)
        assert engine.stats().queued == 6
        engine.submit(fakes.FakeCapture(fakes.a_record))
        metric.release()
        return await asyncio.gather(*scoring)

    assert all(isinstance(scored, ScoredRecord) for scored in asyncio.run(score()))
    assert engine.flush(fakes.PATIENCE)
    assert engine.stats().dropped == {"queue_full": 3}


def test_cancelling_the_task_stops_the_metrics_and_ends_what_the_emitters_have_open(fakes, make_engine):
    metric, emitter = fakes.HangingMetric(), fakes.NotingEmitter()
    engine = make_engine(metric, emitters=[emitter], concurrency=1)

    async def cancel() -> None:
        scoring, waiting = (asyncio.create_task(engine.score(fakes.a_record())) for _ in range(2))
        await asyncio.to_thread(metric.wait_until_started)
        for task in (waiting, scoring):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancel())

    assert metric.was_cancelled.wait(fakes.PATIENCE)
    assert engine.flush(fakes.PATIENCE)
    assert emitter.journal == ["start", "abandon", "flush"]
    assert engine.stats() == EngineStats(submitted=2, dropped={"cancelled": 2})


def test_what_is_not_scored_says_why(fakes, make_engine, monkeypatch):
    def fails(_: object = None) -> None:
        raise ValueError

    emitter = fakes.ListEmitter()
    engine = make_engine(fakes.ConstantMetric(), emitters=[emitter])
    redacting = make_engine(fakes.ConstantMetric(), emitters=[emitter], redact=fails)
    monkeypatch.setenv("RAGSPAN_ENABLED", "false")
    turned_off = make_engine(fakes.ConstantMetric())

    assert [
        asyncio.run(engine.score(fakes.FakeCapture(lambda: None))),
        asyncio.run(engine.score(fakes.FakeCapture(fails))),
        asyncio.run(redacting.score(fakes.a_record())),
        asyncio.run(turned_off.score(fakes.a_record())),
    ] == [Dropped(reason=reason) for reason in ("nothing_to_score", "capture_error", "redaction_failed", "not_running")]
    assert engine.stats().nothing_to_score == 1
    assert emitter.journal == []
