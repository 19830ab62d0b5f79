"""Background in the prompts of an LLM judge."""

from __future__ import annotations

import pytest

from ragspan.judges.session import JudgingSession, judging
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.outcomes import NotApplicable
from ragspan.records import Background, RagRecord

FEE = "The annual fee of the silver card is 49 euros."
FURTHER = Background(text=f"fees() returned: {FEE}", kind="tool")
CLAIMS = {"claims": [FEE]}
GROUNDED = {"grounding": {"reasoning": "because", "verdict": "grounded"}}


def record(**changes):
    given = {"question": "What?", "contexts": ["Cards are grey."], "response": FEE, "background": [FURTHER]}
    return RagRecord(**(given | changes))


def verdicts(verdict):
    return {"claim_verdicts": [{"number": 1, "reasoning": "because", "verdict": verdict}]}


async def test_it_stands_after_the_common_beginning_in_adherence_and_verdicts_and_nowhere_else(scripted, reply):
    judge, client = scripted(
        [reply(**GROUNDED)],
        [reply(**CLAIMS)],
        [reply(**verdicts("supported"))],
        [reply(completeness={"reasoning": "r", "value": 1})],
        [reply(context_verdicts=[{"number": 1, "reasoning": "r", "verdict": "useful"}])],
    )
    one = record()

    await judge.vote_adherence(one, 1)
    await judge.verify_claims(one, await judge.extract_claims(one))
    await judge.rate_completeness(one, 1)
    await judge.judge_usefulness(one)

    adherence, claims, verification, completeness, usefulness = client.tasks
    for task in (adherence, verification):
        assert task.count("<<<background ") == 1
        assert f"(tool) {FURTHER.text}" in task
        assert task.index("<<<end of background") < task.index("Task:")
    for task in (claims, completeness, usefulness):
        assert FURTHER.text not in task
    beginnings = {prompt[: prompt.index("<<<end of response")] for prompt in client.prompts}
    assert len(beginnings) == 1
    assert FURTHER.text not in beginnings.pop()


async def test_without_background_no_prompt_speaks_of_it(scripted, reply):
    judge, client = scripted([reply(**GROUNDED)])

    await judge.vote_adherence(record(background=[]), 1)

    assert "background" not in client.prompts[0]


@pytest.mark.parametrize(("room", "most"), [(60_000, 8_000), (10_000, 2_000)])
async def test_a_judge_with_little_room_gets_less_of_it(scripted, reply, room, most):
    judge, client = scripted([reply(**GROUNDED)], max_context_chars=room)
    long = "The harbour is grey, and the silver boats leave it each year. " * 500 + FEE

    await judge.vote_adherence(record(background=[long]), 1)

    quoted = client.tasks[0].partition("<<<end of background")[0]
    assert FEE in quoted
    assert most / 2 < len(quoted) < most + 300


async def test_adherence_without_documents_asks_for_nothing_that_faithfulness_asks_for_as_well(scripted, reply):
    judge, client = scripted([reply(**CLAIMS)], [reply(**verdicts("supported"))], [reply(**GROUNDED)])
    one = record(contexts=[])

    with judging(JudgingSession(record=one)):
        adherence = await ContextAdherence(judge, polls=1).score(one)
        faithfulness = await Faithfulness(judge).score(one)

    assert (adherence.label, faithfulness.label) == ("pass", "pass")
    assert len(client.requests) == 3


async def test_what_background_does_not_support_is_not_voted_on(scripted, reply):
    judge, client = scripted([reply(**CLAIMS)], [reply(**verdicts("unsupported"))])

    assert await ContextAdherence(judge, polls=1).score(record(contexts=[])) == NotApplicable(reason="no_contexts")
    assert len(client.requests) == 2
