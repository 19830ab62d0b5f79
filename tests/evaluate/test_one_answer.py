"""One answer in, its scores out."""

from __future__ import annotations

import asyncio

import ragspan
from ragspan.config import Settings
from ragspan.outcomes import NotApplicable, Score
from ragspan.testing import FakeJudge

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


def test_it_prints_as_a_table_with_the_reason_of_each_metric():
    judge = FakeJudge(supported=[False])
    scored = ragspan.score(**ANSWER, metrics="faithfulness,completeness", judge=judge)
    faithfulness, completeness = str(scored).splitlines()

    assert faithfulness.startswith("faithfulness  0.00  fail  ")
    assert "1 of 1 claims unsupported: It is 300 m high." in faithfulness
    assert completeness.startswith("completeness  1.00  pass")
    assert repr(scored) == str(scored)


async def test_it_works_in_a_running_loop():
    blocking = ragspan.score(**ANSWER, metrics=["faithfulness"], judge=FakeJudge())
    judges = FakeJudge(), FakeJudge(supported=[False])
    scoring = (ragspan.ascore(**ANSWER, metrics=["faithfulness"], judge=judge) for judge in judges)
    awaited, other = await asyncio.gather(*scoring)

    assert [one.outcomes["faithfulness"].value for one in (blocking, awaited, other)] == [1.0, 1.0, 0.0]


class Own:
    name = "own"

    def score(self, record):
        return Score(value=len(record.contexts) / 10)


def test_metrics_of_the_users_own_and_a_single_context_are_welcome():
    assert ragspan.score(contexts="It rains.", response="It rains.", metrics=[Own()]).outcomes["own"].value == 0.1
    assert ragspan.score(contexts=[], response="r", metrics="faithfulness").outcomes["faithfulness"] == NotApplicable(
        reason="no_contexts"
    )
