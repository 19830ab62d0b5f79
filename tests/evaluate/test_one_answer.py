"""One answer in, its scores out."""

from __future__ import annotations

import asyncio

import pytest
from fakes import FakeJudge

import ragspan
from ragspan.config import Settings
from ragspan.evaluate import evaluate
from ragspan.exceptions import ConfigurationError, RagspanError

ANSWER = {"question": "How high is it?", "contexts": ["It is 330 m high."], "response": "It is 300 m high."}


def test_an_answer_is_scored_by_the_metrics_of_the_settings():
    scored = ragspan.score(**ANSWER)

    assert set(scored.outcomes) == set(Settings.from_environment({}).metrics)
    assert scored.outcomes["faithfulness"].value == 0.0


def test_where_nothing_is_named_it_is_scored_as_configured():
    ragspan.configure(metrics=["context_adherence"], judge=FakeJudge(), emitters=[])
    scored = ragspan.score(**ANSWER)

    assert set(scored.outcomes) == {"context_adherence"}
    assert scored.outcomes["context_adherence"].judge == FakeJudge().name


def test_an_answer_that_cannot_be_redacted_or_scored_is_an_error(monkeypatch):
    monkeypatch.setenv("RAGSPAN_REDACT", "builtins:len")
    with pytest.raises(RagspanError, match=r"^the answer was not scored: redaction_failed$"):
        ragspan.score(**ANSWER)
    monkeypatch.setenv("RAGSPAN_ENABLED", "false")
    with pytest.raises(ConfigurationError, match=r"^RAGSPAN_ENABLED is false, so nothing would be scored$"):
        evaluate([ANSWER], "faithfulness")


async def test_it_works_in_a_running_loop():
    blocking = ragspan.score(**ANSWER, metrics=["faithfulness"], judge=FakeJudge())
    judges = FakeJudge(), FakeJudge(supported=[False])
    scoring = (ragspan.ascore(**ANSWER, metrics=["faithfulness"], judge=judge) for judge in judges)
    awaited, other = await asyncio.gather(*scoring)

    assert [one.outcomes["faithfulness"].value for one in (blocking, awaited, other)] == [1.0, 1.0, 0.0]
