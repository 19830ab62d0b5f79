"""More than the engine can score: records of many megabytes, and a judge that has stopped."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from ragspan.judges import OpenAIJudge
from ragspan.metrics import ContextAdherence
from ragspan.telemetry import OTelEmitter
from ragspan.testing import InMemoryTelemetry

MEGABYTE = 1024 * 1024


@pytest.mark.parametrize("drop", ["oldest", "newest"])
def test_memory_stays_within_the_bound_while_the_judge_has_stopped(fakes, make_engine, assert_conserved, drop):
    """Sixty records of 10 MB, and room for six, of which one is in work."""
    judge = fakes.BlockingMetric()
    engine = make_engine(judge, queue_bytes=64 * MEGABYTE, concurrency=1, drop=drop)
    engine.submit(fakes.a_record(response="x" * (10 * MEGABYTE)))
    judge.wait_until_started()
    tracemalloc.start()
    try:
        for number in range(60):
            engine.submit(fakes.a_record(response=f"{number}" + "x" * (10 * MEGABYTE)))
        waiting, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    stats = assert_conserved(engine)
    assert (stats.queued, stats.in_flight, stats.dropped) == (5, 1, {"queue_bytes": 55})
    assert 50 * MEGABYTE < waiting < 55 * MEGABYTE


@pytest.mark.parametrize("part", ["response", "many contexts"])
def test_an_answer_of_10_megabytes_is_scored_on_what_fits(fakes, fake_openai, make_engine, part):
    """The judge reads the beginnings, the span carries no more than it may."""
    text = "The river carries water to the sea. " * (10 * MEGABYTE // 36)
    parts = {"response": text} if part == "response" else {"contexts": [text[: MEGABYTE // 10]] * 100}
    fake_openai.script(grounding=[{"reasoning": text[:50_000], "verdict": "grounded"}] * 5)
    telemetry = InMemoryTelemetry()
    engine = make_engine(
        ContextAdherence(OpenAIJudge("test-model", base_url=fake_openai.base_url, api_key="sk-test"), polls=1),
        emitters=[OTelEmitter(tracer_provider=telemetry.tracer_provider, capture_content=True)],
    )
    for _ in range(5):
        engine.submit(fakes.a_record(**parts))

    assert engine.flush(fakes.PATIENCE)
    assert [span.attributes["ragspan.score.context_adherence"] for span in telemetry.spans()] == [1.0] * 5
    assert max(len(json.dumps(request)) for request in fake_openai.requests) < 200_000
    assert max(len(span.to_json()) for span in telemetry.spans()) < MEGABYTE
