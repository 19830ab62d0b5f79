"""The examples of the metrics' published descriptions and their neighbours come out as the definitions say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragspan import RagRecord
from ragspan.judges import OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence, Faithfulness

EXAMPLES = json.loads(Path(__file__).with_name("textbook.json").read_text("utf-8"))
"""Each has a question, its context or contexts, and a response; of those that leave most out a full response follows."""


async def score_of(metric, question, contexts, response):
    record = RagRecord(question=question, contexts=contexts, response=response)
    return (await metric(OverlapJudge()).score(record)).value


@pytest.mark.parametrize(("question", "context", "response"), EXAMPLES["another place or time"])
async def test_another_place_or_time_fails(question, context, response):
    assert await score_of(ContextAdherence, question, [context], response) < 0.5
    assert await score_of(Faithfulness, question, [context], response) < 0.8


@pytest.mark.parametrize(("question", "contexts", "response"), EXAMPLES["in other words"])
async def test_facts_of_several_contexts_in_other_words_pass(question, contexts, response):
    assert await score_of(ContextAdherence, question, contexts, response) >= 0.5
    assert await score_of(Faithfulness, question, contexts, response) >= 0.8
    assert await score_of(Completeness, question, contexts, response) >= 0.5


@pytest.mark.parametrize(("question", "context", "partial", "full"), EXAMPLES["leaves most out"])
async def test_a_response_that_leaves_out_half_or_more_is_true_and_incomplete(question, context, partial, full):
    assert await score_of(ContextAdherence, question, [context], partial) >= 0.5
    assert await score_of(Completeness, question, [context], partial) < 0.5
    assert await score_of(Completeness, question, [context], full) > 0.8
