"""The metrics' definitions, by example: through HTTP, the real `openai` client, the judge and the metric."""

from __future__ import annotations

import pytest

from ragspan.judges.llm import PROMPT_VERSION
from ragspan.metrics import (
    AnswerRelevance,
    ChunkAttribution,
    ChunkUtilization,
    Completeness,
    ContextAdherence,
    ContextRelevance,
    ContextUtilization,
    Faithfulness,
)
from ragspan.outcomes import MetricFailure


def votes(*verdicts):
    return [{"reasoning": verdict, "verdict": verdict} for verdict in verdicts]


def ratings(*values):
    return [{"reasoning": f"{value}", "value": value} for value in values]


def numbered(*verdicts, first=1):
    return [{"number": n, "reasoning": "r", "verdict": verdict} for n, verdict in enumerate(verdicts, start=first)]


YES, NO = "grounded", "not_grounded"
THREE = [["a", "b", "c"]]
USED = [{"number": n, "reasoning": "r", "sentences": used} for n, used in ((1, [1]), (2, []), (3, []))]
LENGTHS = 68 + 54 + 62  # of the contexts, which are a sentence each


@pytest.mark.parametrize(
    ("metric", "options", "script", "value", "requests"),
    [
        (ContextAdherence, {}, {"grounding": votes(NO, YES, YES)}, 2 / 3, 1),
        (ContextAdherence, {}, {"grounding": [*votes(YES), "garbage", *votes(NO, "perhaps")]}, 0.5, 2),
        (ContextAdherence, {"early_stop": True}, {"grounding": votes(YES, YES)}, 1.0, 1),
        (Completeness, {}, {"completeness": ratings(0.4, 0.5, 0.6)}, 0.5, 1),
        (Completeness, {}, {"completeness": ratings(0.2, 1.5, 0.4, 0.6)}, 0.4, 2),  # 1.5 is asked for once more
        (AnswerRelevance, {}, {"answer_relevance": ratings(1, 0.5, 0)}, 0.5, 1),
        (ContextUtilization, {}, {"context_verdicts": [numbered("useful", "not_useful", "useful")]}, 5 / 6, 1),
        (ContextUtilization, {}, {"context_verdicts": [numbered(*["useful"] * 3)]}, 1.0, 1),
        (ContextUtilization, {}, {"context_verdicts": [numbered(*["not_useful"] * 3)]}, 0.0, 1),
        (ChunkAttribution, {}, {"context_verdicts": [numbered("not_useful", "not_useful", "useful")]}, 1 / 3, 1),
        (ContextRelevance, {}, {"context_relevance": [numbered("full", "none", "partial")]}, 0.5, 1),
        (ChunkUtilization, {}, {"used_sentences": [USED]}, 68 / LENGTHS, 1),
        (Faithfulness, {}, {"claims": [["a", "b"]], "claim_verdicts": [numbered("supported", "unsupported")]}, 0.5, 2),
        (  # the first of two verdicts counts, and a missing one is asked for once more
            Faithfulness,
            {},
            {
                "claims": THREE,
                "claim_verdicts": [
                    [*numbered("supported", "unsupported"), *numbered("unsupported")],
                    numbered("supported", first=3),
                ],
            },
            2 / 3,
            3,
        ),
    ],
)
async def test_the_value(fake_openai, openai_judge, super_bowl, metric, options, script, value, requests):
    fake_openai.script(**script)

    score = await metric(openai_judge(), **options).score(super_bowl)

    assert (score.value, score.judge) == (value, "openai:test-model")
    assert len(fake_openai.requests) == requests


@pytest.mark.parametrize(
    ("metric", "script", "message"),
    [
        (  # no smaller denominator
            Faithfulness,
            {"claims": THREE, "claim_verdicts": [numbered("supported", "supported"), []]},
            "1 of 3 claims have no verdict",
        ),
        (
            ContextAdherence,
            {"grounding": [*votes(YES), "garbage", *votes("maybe"), "garbage", "[]"]},
            "1 of 3 votes are valid, but more than half have to be",
        ),
    ],
)
async def test_verdicts_that_stay_missing_are_a_failure(fake_openai, openai_judge, super_bowl, metric, script, message):
    fake_openai.script(**script)

    outcome = await metric(openai_judge()).score(super_bowl)

    assert outcome == MetricFailure(error_type="missing_verdicts", message=message)


async def test_every_score_says_which_prompts_made_it_and_whether_they_held_all_of_the_texts(
    fake_openai, openai_judge, super_bowl
):
    fake_openai.script(grounding=votes(*[YES] * 6))

    whole = await ContextAdherence(openai_judge()).score(super_bowl)
    cut = await ContextAdherence(openai_judge(max_context_chars=430)).score(super_bowl)

    assert whole.prompt_version == cut.prompt_version == PROMPT_VERSION
    assert "read" not in whole.details
    assert 0.5 < cut.details["read"] < 1
    assert "the judge saw only 68 of" in cut.explanation
