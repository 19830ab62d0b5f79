"""What a judge's client waits for is bounded by what asks."""

from __future__ import annotations

import pytest

from ragspan.judges import OpenAIJudge
from ragspan.metrics import ContextAdherence


@pytest.mark.parametrize("retry_after", ["60", None])
def test_the_timeout_of_a_metric_ends_the_retries_of_its_judge(fakes, make_engine, fake_openai, retry_after):
    fake_openai.reply_headers = {"Retry-After": retry_after} if retry_after else {}
    fake_openai.answer = lambda _request: fake_openai.fails(429, "slow down")
    judge = OpenAIJudge("m", base_url=fake_openai.base_url, api_key="sk-key", max_retries=1000)
    emitter = fakes.ListEmitter()
    engine = make_engine(ContextAdherence(judge, polls=1), emitters=[emitter], metric_timeout=0.2)
    engine.submit(fakes.a_record())

    assert engine.flush(fakes.PATIENCE)
    assert emitter.scored[0].outcomes["context_adherence"].error_type == "timeout"
    assert len(fake_openai.requests) <= 1
