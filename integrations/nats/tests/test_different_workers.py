"""Workers of one stream that do not score the same."""

from __future__ import annotations

import asyncio

import pytest
from waiting import until

from ragspan.throttled_log import ThrottledLog
from ragspan_nats.consumer import Consumer
from ragspan_nats.settings import BrokerAccess, Stream, WorkerOptions


@pytest.fixture
async def start(broker):
    """Starts the consumer of a worker that scores what is told."""
    made = []

    async def start(scores):
        consumer = Consumer(
            access=BrokerAccess(url=broker.url),
            stream=Stream(),
            options=WorkerOptions(),
            take=pytest.fail,
            log=ThrottledLog(),
            scores=scores,
        )
        made.append(consumer)
        await asyncio.wait_for(consumer._connection.client(), 60)
        return consumer

    yield start
    for consumer in made:
        await consumer.close()


async def test_one_that_scores_otherwise_than_the_last_says_so_at_its_start(start, caplog):
    await start("faithfulness by overlap")
    assert caplog.text == ""

    await start("completeness by overlap")

    assert "this one completeness by overlap, another one faithfulness by overlap" in caplog.text


async def test_one_that_was_there_before_says_so_as_well(start, caplog):
    first = await start("faithfulness by overlap")
    await start("faithfulness by openai:judge")
    caplog.clear()

    await first.recover_orphans()

    assert "this one faithfulness by overlap, another one faithfulness by openai:judge" in caplog.text


async def test_those_that_score_the_same_say_nothing(start, caplog):
    for _ in range(3):
        await (await start("faithfulness by overlap")).recover_orphans()

    assert caplog.text == ""


@pytest.mark.slow
def test_the_command_says_it(make_worker, backend):
    usual = {"OTEL_EXPORTER_OTLP_ENDPOINT": backend.url, "RAGSPAN_JUDGE": "overlap", "PYTHONUNBUFFERED": "1"}
    first = make_worker("--metrics", "faithfulness", **usual)
    until(lambda: first.is_ready, what="a worker", patience=60)

    second = make_worker("--metrics", "completeness,faithfulness", **usual)

    second.until_it_says("this one completeness, faithfulness by overlap, another one faithfulness by overlap")
