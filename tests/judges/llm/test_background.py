"""Background in the prompts of an LLM judge."""

from __future__ import annotations

from ragspan.metrics import ContextAdherence
from ragspan.outcomes import NotApplicable
from ragspan.records import Background, RagRecord

FEE = "The annual fee of the silver card is 49 euros."
FURTHER = Background(text=f"fees() returned: {FEE}", kind="tool")


def record(**changes):
    given = {"question": "What?", "contexts": ["Cards are grey."], "response": FEE, "background": [FURTHER]}
    return RagRecord(**(given | changes))


def judged(verdict):
    return {"judged_claims": {"claims": [{"claim": FEE, "reasoning": "because", "verdict": verdict}], "more": False}}


async def test_it_stands_after_the_common_beginning_where_an_answer_may_rest_on_it_and_nowhere_else(
    scripted, reply, vote
):
    judge, client = scripted([vote()], [reply(completeness={"reasoning": "r", "value": 1})])
    one = record()

    await judge.vote_adherence(one, 1)
    await judge.rate_completeness(one, 1)

    adherence, completeness = client.tasks
    assert adherence.count("<<<background ") == 1
    assert FURTHER.text not in completeness
    assert FURTHER.text not in client.prompts[0][: client.prompts[0].index("<<<end of response")]


async def test_what_background_does_not_support_is_not_passed(scripted, reply):
    grounding = {"grounding": {"reasoning": "because", "verdict": "grounded"}}
    judge, client = scripted([reply(**judged("unsupported"), **grounding)])

    assert await ContextAdherence(judge, polls=1).score(record(contexts=[])) == NotApplicable(reason="no_contexts")
    assert len(client.requests) == 1
