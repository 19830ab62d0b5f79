from __future__ import annotations

from itertools import takewhile

import pytest

from ragspan.judges.llm.prompt_context import lay_out
from ragspan.judges.llm.prompts import ADHERENCE
from ragspan.judges.llm.replies import REPLY_SCHEMA
from ragspan.records import RagRecord


def user_message(record, task=ADHERENCE):
    return lay_out(record, max_context_chars=60_000, max_response_chars=20_000).messages(task)[1]["content"]


async def ask_everything(judge, record):
    await judge.vote_adherence(record, 3)
    await judge.rate_completeness(record, 3)
    await judge.rate_answer_relevance(record, 3)
    await judge.judge_usefulness(record)
    await judge.rate_context_relevance(record)
    await judge.measure_utilization(record)
    claims = await judge.extract_claims(record)
    await judge.verify_claims(record, claims)


@pytest.fixture
def all_replies(reply):
    """What a model says to the questions of all metrics on a record with five contexts and five claims."""

    def verdicts(verdict):
        return [{"number": number, "reasoning": "r", "verdict": verdict} for number in range(1, 6)]

    claims = [f"Claim {number} states something that takes about a hundred characters to state." for number in range(5)]
    return [
        [reply(grounding={"reasoning": "r", "verdict": "grounded"})] * 3,
        [reply(completeness={"reasoning": "r", "value": 1})] * 3,
        [reply(answer_relevance={"reasoning": "r", "value": 1})] * 3,
        [reply(context_verdicts=verdicts("useful"))],
        [reply(context_relevance=verdicts("full"))],
        [reply(used_sentences=[{"number": n, "reasoning": "r", "sentences": []} for n in range(1, 6)])],
        [reply(claims=claims)],
        [reply(claim_verdicts=verdicts("supported"))],
    ]


async def test_all_requests_about_a_record_begin_with_the_same_four_fifths(scripted, all_replies):
    judge, client = scripted(*all_replies)
    contexts = [f"{number} " * 500 for number in range(10, 60, 10)]

    await ask_everything(judge, RagRecord(question="What?", contexts=contexts, response="That. " * 50))

    assert len(client.prompts) == 8
    shared = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*client.prompts, strict=False)))
    assert shared >= 0.8 * max(map(len, client.prompts))


async def test_all_requests_have_the_same_schema(scripted, all_replies):
    """Providers put the schema ahead of the messages: another schema is another beginning."""
    judge, client = scripted(*all_replies)

    await ask_everything(judge, RagRecord(question="What?", contexts=["a"] * 5, response="That."))

    assert all(request["schema"] == REPLY_SCHEMA for request in client.requests)


def test_a_record_without_question_or_contexts_can_be_laid_out():
    message = user_message(RagRecord(question=None, contexts=None, response="Some answer."))

    assert "0 contexts" in message
    assert "Some answer." in message
