"""What any record may cost: all metrics together, in processor time, from one analysis."""

from __future__ import annotations

import asyncio
import random
import unicodedata
from functools import partial

import pytest
from processor import seconds_of

from ragspan.judges import OverlapJudge
from ragspan.judges.screen.contexts import MAX_CHARACTERS, MAX_CONTEXTS
from ragspan.judges.screen.wording import quoted
from ragspan.metrics import (
    ChunkAttribution,
    ChunkUtilization,
    Completeness,
    ContextAdherence,
    ContextRelevance,
    ContextUtilization,
    Faithfulness,
)
from ragspan.outcomes import MetricFailure, NotApplicable, Score
from ragspan.records import RagRecord

SECONDS = 0.25  # where nothing else runs
ALLOWED = 2 * SECONDS
OF_EACH_CONTEXT = (ContextUtilization, ContextRelevance, ChunkAttribution, ChunkUtilization)
_random = random.Random(1)
WORDS = ["".join(_random.choices("abcdefghijklmnopqrstuvwxyz", k=_random.randint(3, 10))) for _ in range(3000)]


def prose(characters):
    sentences = []
    while sum(map(len, sentences)) < characters:
        sentences.append(" ".join(_random.choices(WORDS, k=12)).capitalize() + ". ")
    return "".join(sentences)


LETTERS = [sign for sign in map(chr, range(0x20, 0x30000)) if unicodedata.category(sign)[0] in "LMN"]
HAN = list(map(chr, range(0x4E00, 0x9FA0)))


def signs(among, count=100_000):
    return "".join(_random.choices(among, k=count))


def outcomes_of(record):
    """What all metrics come to, as an engine asks them: of one judge, one after the other."""
    judge = OverlapJudge()

    async def ask():
        metrics = [metric(judge) for metric in (ContextAdherence, Completeness, Faithfulness, *OF_EACH_CONTEXT)]
        return {metric.name: await metric.score(record) for metric in metrics}

    return asyncio.run(ask())


ANSWER = prose(3000)


HOSTILE = {
    "10,000 contexts": lambda: ([prose(60)] * 10_000, ANSWER),
    "100,000 sentences in the response": lambda: ([ANSWER], "Ab c. " * 100_000),
    "one token": lambda: (["a" * 10_000_000], "b" * 10_000_000),
    "words of all scripts": lambda: ([signs([*LETTERS, *" " * 20_000])], signs([*LETTERS, *" " * 20_000])),
    "one run of Chinese": lambda: ([signs(HAN)], signs(HAN)),
    "one run of digits": lambda: ([signs("0123456789")], signs("0123456789")),
    "numbers alone": lambda: (["1, 2,3 4.5 " * 20_000], "1, 2,3 4.5 " * 20_000),
}


@pytest.mark.alone
@pytest.mark.parametrize("texts", HOSTILE.values(), ids=HOSTILE)
def test_no_record_takes_much_of_the_processor(texts):
    contexts, response = texts()
    record = RagRecord(question="What about Beta?", contexts=contexts, response=response)

    assert seconds_of(*[partial(outcomes_of, record)] * 5, enough=ALLOWED) <= ALLOWED
    assert not isinstance(outcomes_of(record)["context_adherence"], MetricFailure)


def test_what_is_asked_of_each_context_does_not_apply_to_more_than_are_told_apart():
    few = RagRecord(
        question="What is Beta?", contexts=["Beta settles payments."] * MAX_CONTEXTS, response="Beta settles."
    )
    many = RagRecord(question=few.question, contexts=[*few.contexts, few.contexts[0]], response=few.response)
    names = {metric.name for metric in OF_EACH_CONTEXT}

    assert all(isinstance(outcome, Score) for outcome in outcomes_of(few).values())
    outcomes = outcomes_of(many)
    assert {name for name, outcome in outcomes.items() if isinstance(outcome, NotApplicable)} == names
    assert {outcomes[name].reason for name in names} == {"too_many_contexts"}


def test_the_score_says_how_much_was_read():
    record = RagRecord(question="q", contexts=["tower. " * MAX_CHARACTERS], response="tower.")
    whole = RagRecord(question="q", contexts=["tower. "], response="tower.")

    read = outcomes_of(record)["context_adherence"].details["read"]
    assert read == pytest.approx(1 / 7, abs=0.001)
    assert "read" not in outcomes_of(whole)["context_adherence"].details


@pytest.mark.parametrize(
    ("changes", "read"),
    [
        ({"contexts": ["a" * 80_000]}, 1),
        ({"contexts": ["a" * 100_000]}, 80_001 / 100_001),
        ({"contexts": ["a" * 10] * 1_250}, 10_001 / 12_501),
        ({"response": "a" * 40_000, "contexts": ["b"]}, 30_001 / 40_001),
        ({"question": "a" * 25_000, "contexts": ["b"]}, 20_002 / 25_002),
        ({"response": "", "contexts": []}, 1),
    ],
)
def test_the_bounds_of_a_record(changes, read):
    record = RagRecord(**({"question": None, "response": "r"} | changes))

    assert OverlapJudge().share_read(record) == pytest.approx(read, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a  b.", '"a b"'),
        ("a...", '"a..."'),
        ("a" * 159 + ".", f'"{"a" * 159}"'),
        ("ab " * 53 + "c", f'"{"ab " * 53}c"'),
        ("ab " * 53 + "cd", f'"{("ab " * 53).strip()}..."'),
    ],
    ids=len,
)
def test_a_quotation_is_one_line_of_160_characters_at_most(text, shown):
    assert quoted(text) == shown
