"""The metrics' definitions, by example: through HTTP, the real `openai` client, the judge and the metric."""

from __future__ import annotations

import pytest

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
        (ContextAdherence, {}, {"grounding": [*votes(YES), "garbage", *votes(NO, "Not grounded.")]}, 1 / 3, 2),
        (ContextAdherence, {"polls": 2}, {"grounding": votes(YES, YES)}, 1.0, 1),
        (Completeness, {}, {"completeness": ratings(0.2, 1.5, 0.4, 0.6)}, 0.4, 2),  # 1.5 is asked for once more
        (AnswerRelevance, {}, {"answer_relevance": ratings(1, 0.5, 0)}, 0.5, 1),
        (ContextUtilization, {}, {"context_verdicts": [numbered("useful", "not_useful", "useful")]}, 5 / 6, 1),
        (ChunkAttribution, {}, {"context_verdicts": [numbered("not_useful", "not_useful", "useful")]}, 1 / 3, 1),
        (ContextRelevance, {}, {"context_relevance": [numbered("full", "none", "partial")]}, 0.5, 1),
        (ChunkUtilization, {}, {"used_sentences": [USED]}, 68 / LENGTHS, 1),
        (
            Faithfulness,
            {},
            {"claims": THREE, "claim_verdicts": [numbered("supported", "unsupported", "supported")]},
            2 / 3,
            1,
        ),
    ],
)
async def test_the_value(fake_openai, openai_judge, super_bowl, metric, options, script, value, requests):
    fake_openai.script(**script)

    score = await metric(openai_judge(), **options).score(super_bowl)

    assert (score.value, score.judge) == (value, "openai:test-model")
    assert len(fake_openai.requests) == requests
