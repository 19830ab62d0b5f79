"""Whole outcomes of every metric, by what its judge says and what is known of the answer.

After a change that is meant: `WRITE_RECORDS=1 python -m pytest tests/metrics/test_whole_outcomes.py`, and read the difference.
"""

from __future__ import annotations

import random
from dataclasses import asdict
from pathlib import Path

import pytest
from whole_records import WholeRecords

from ragspan.engine.judge_share_decisions import RANDOM_PART, DoubtThreshold
from ragspan.judges.judge_protocols import ClaimVerdict, ContextRating, Rating, Vote
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
from ragspan.metrics.citation_correctness import citations_of
from ragspan.metrics.doubt import USUAL_DOUBTS, doubt_of, judged
from ragspan.metrics.metric import screen_contexts
from ragspan.outcomes import MetricFailure, NotApplicable, Score
from ragspan.records import Background, RetrievedContext

WHOLE = WholeRecords(Path(__file__).with_name("whole_outcomes.json"))


def claims_of(verdicts, *, probability=None):
    """`s`, `u` and `?` for supported, unsupported and unsure."""
    told = {"s": "supported", "u": "unsupported", "?": "unsure"}
    return {
        "claims": [f"Claim {at}." if at else "word " * 60 for at in range(len(verdicts))],
        "supported": [
            ClaimVerdict(index=at, verdict=told[one], probability=probability, explanation=f"why {at}")
            for at, one in enumerate(verdicts)
        ],
    }


SAID = {
    "votes that agree": {"votes": [True, True, True]},
    "votes that differ": {"votes": [True, False, True]},
    "votes of which most say no": {"votes": [False, False, True]},
    "two votes": {"votes": [True, False]},
    "likely and unsure": {"votes": [Vote(grounded=True, probability=0.7, explanation="so", unsure=True)] * 3},
    "likely": {"votes": [Vote(grounded=False, probability=0.3, explanation="no")] * 3},
    "ratings": {"ratings": [0.25, 1.0, 0.5]},
    "two ratings": {"ratings": [Rating(value=0.5, explanation="half"), Rating(value=0.9, explanation="most")]},
    "one rating": {"ratings": [1.0]},
    **{f"claims {one}": claims_of(one) for one in ("s", "u", "?", "sssu", "ssssu", "sss?", "ssss?", "s?u?", "uu?", "???", "uuuuu", "uuuuuu", "suuuuuuu")},
    **{f"probable claims {one}": claims_of(one, probability=0.4) for one in ("s", "?", "sss?", "ssss?", "u?", "su")},
    "contexts": {"useful": [1, 0], "rated": [0.5, 0.0]},
    "no contexts": {"useful": [0, 0], "rated": [0.0, 0.0]},
    "all contexts": {"useful": [1, 1], "rated": [1.0, 0.25]},
    "a context too few": {"useful": [1], "rated": [1.0]},
    "contexts with reasons": {"useful": [ContextRating(index=1, value=1.0, explanation="b"), ContextRating(index=0, value=0.0, explanation="a")]},
}  # fmt: skip
METRICS = {
    "votes": [ContextAdherence],
    "ratings": [Completeness, AnswerRelevance],
    "claims": [Faithfulness],
    "useful": [ContextUtilization, ChunkAttribution],
    "rated": [ContextRelevance, ChunkUtilization],
}
ANSWERS = {
    "plain": {},
    "only background": {"contexts": [], "background": (Background(text="Green Bay won it all in the year 1967, they say.", kind="tool"),)},
    "cut background": {"background": (Background(text="Notes.", kind="notes"),), "background_truncated": True},
    "ranked": {"contexts": [RetrievedContext(text="Green Bay won.", id="doc-1", rank=4), RetrievedContext(text="In 1967.", rank=0)]},
}  # fmt: skip


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("answer", ANSWERS)
async def test_a_whole_outcome(fixed_judge, answered, said, answer):
    found = {}
    for metric in [one for kind, ones in METRICS.items() if kind in SAID[said] for one in ones]:
        outcome = await metric(fixed_judge(**SAID[said])).score(answered(**ANSWERS[answer]))
        told = {name: part for name, part in asdict(outcome).items() if part not in (None, (), {}, False)}
        found[f"{metric.__name__} {type(outcome).__name__}"] = {
            name: round(part, 6) if type(part) is float else repr(part) for name, part in told.items()
        }
    known, found = WHOLE.told(f"{said}, {answer}", found)

    assert found == known


@pytest.mark.parametrize("seen", [True, False])
def test_why_contexts_are_unknown_is_told(answered, seen):
    reasons = (None, "picture", "provider_search", "unseen_prompt", "unmarked_text", "earlier_answer", "too_much")
    records = [answered(contexts=None, contexts_unknown=one, prompts_seen=seen) for one in reasons]
    known, found = WHOLE.told(f"unknown contexts, {seen}", [screen_contexts(record).detail for record in records])

    assert found == known


CITING = (
    "Green Bay won [1]. It was in 1967 [2][3].\n[0] Nobody else [doc-a] won (source 2), they say [4].\n"
    "A list:\n- one ¹\n- two [1, 2]\n[2] Then more. [1] [3] The end 【1†source】.\n\nSources:\n[1] a.pdf\n[2] b.pdf"
)


@pytest.mark.parametrize(
    "response", [CITING, CITING.replace("[0]", ""), "None.", "[1] First.", "Won [1]. Won. [2] [7] [Handbook]"]
)
def test_which_sentence_a_citation_is_of(answered, response):
    contexts = [RetrievedContext(text="a", id="doc-a"), RetrievedContext(text="b", id="3"), RetrievedContext(text="c")]
    cited = [
        [one.mark, one.sentence, one.context] for one in citations_of(answered(response=response, contexts=contexts))
    ]
    known, found = WHOLE.told(f"citations in {response[:20]} {len(response)}", cited)

    assert found == known


DOUBTS = [
    ({"context_adherence": Score(value=0.2)}, 0.6),
    ({"context_adherence": Score(value=0.2), "faithfulness": Score(value=0.6)}, 0.525),
    ({"context_adherence": Score(value=0.2, label="fail")}, 0.95),
    ({"faithfulness": NotApplicable(reason="cannot_tell")}, 0.375),
    ({"context_adherence": Score(value=1.0), "faithfulness": MetricFailure(error_type="e", message="")}, 0.09375),
    ({"context_adherence": Score(value=1.0), "faithfulness": NotApplicable(reason="language")}, 0.09375),
    ({"context_adherence": Score(value=0.2), "faithfulness": NotApplicable(reason="no_claims")}, 0.6),
    ({"faithfulness": Score(value=0.4, label="fail")}, 0.9),
    ({"context_adherence": Score(value=1.0)}, 0.0),
    ({"context_adherence": NotApplicable(reason="no_contexts"), "completeness": Score(value=0.0)}, None),
    ({}, None),
]


@pytest.mark.parametrize(("outcomes", "doubt"), DOUBTS)
def test_a_doubt_weighs_adherence_most_and_fails_begin_at_three_quarters(outcomes, doubt):
    assert doubt_of(outcomes) == pytest.approx(doubt)


def test_usual_doubts_are_shares_from_the_least_to_the_most():
    assert [0, *USUAL_DOUBTS, 1] == sorted({0, *USUAL_DOUBTS, 1})


def test_what_a_label_is_worth_for_the_share_that_fails():
    score = Score(value=0.2, label="fail")

    assert [judged(score, asked) for asked in ("doubtful", "random", None)] == [
        ("doubtful", "fail"),
        ("rest", "fail"),
        ("rest", None),
    ]
    assert judged(Score(value=0.2, label="fail", fallback="timeout"), "random") == ("rest", None)
    assert judged(NotApplicable(reason="cannot_tell"), "doubtful") == ("doubtful", None)
    assert judged(NotApplicable(reason="no_contexts"), "doubtful") is None


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.85, 0.9, 0.95, 1.0])
def test_which_answers_are_asked_about_in_a_row(share):
    chance = random.Random(3)
    threshold = DoubtThreshold(share, draw=chance.random)
    told = {"doubtful": "d", "random": "r", None: "-"}
    row = "".join(
        told[threshold.choose(round(chance.random() ** 2, 1 + at % 3), is_drawn=chance.random() < share * RANDOM_PART)]
        for at in range(1200)
    )
    known, found = WHOLE.told(f"asked about, of {share}", row)

    assert found == known
    assert len(row.replace("-", "")) == pytest.approx(1200 * share, abs=30)
