"""What is made of a classifier's verdicts, whichever classifier it is."""

from __future__ import annotations

import pytest

from ragspan.exceptions import JudgeError
from ragspan.judges.detector import Detector
from ragspan.judges.judge_protocols import ClaimVerdict
from ragspan.records import RagRecord


class Told(Detector):
    """Says what it was made with."""

    name = "told"
    languages = frozenset({"en"})

    def __init__(self, *said, whole=True):
        self.said, self.reads_whole = said, whole

    async def detect(self, record, texts):
        self.read = [context.text for context in record.contexts]
        return [ClaimVerdict(index=index, verdict=verdict, probability=about) for index, verdict, about in self.said]


def record(**changes):
    values = {
        "question": None,
        "contexts": ["The tower opened in 1889."],
        "response": "The tower is old. It opened in 1889.",
    }
    return RagRecord(**(values | changes))


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ([(0, "supported", 0.9), (0, "supported", 0.6), (1, "unsure", None)], [("supported", 0.6), ("unsure", None)]),
        ([(0, "supported", 0.1), (0, "unsupported", 0.4), (0, "unsure", 0.2)], [("unsupported", 0.4)]),
        ([(0, "unsupported", 0.4), (0, "unsupported", 0.3)], [("unsupported", 0.3)]),
        ([(0, "supported", None), (0, "supported", 0.7)], [("supported", 0.7)]),
        ([(0, "unsupported", 0.1), (0, "unsupported", None)], [("unsupported", None)]),
        ([(2, "supported", 0.9), (-1, "supported", 0.9), (1, "supported", 0.8)], [("supported", 0.8)]),
    ],
)
async def test_the_worst_verdict_on_a_claim_counts(said, kept):
    found = await Told(*said).verify_claims(record(), ["a", "b"])

    assert [(one.verdict, one.probability) for one in found] == kept
    assert [one.claim for one in found] == [["a", "b"][one.index] for one in found]


@pytest.mark.parametrize(
    ("said", "whole", "votes"),
    [
        ([(0, "supported", 0.9)], True, [(True, 0.9)] * 2),
        ([(0, "supported", 0.9), (1, "unsure", 0.5)], False, [(False, 0.5)] * 2),
        ([(0, "supported", 0.9), (1, "supported", 0.8)], False, [(True, 0.8)] * 2),
        ([(0, "supported", 0.9)], False, []),  # of two sentences
        ([], True, []),
    ],
)
async def test_the_worst_of_all_sentences_is_the_vote(said, whole, votes):
    found = await Told(*said, whole=whole).vote_adherence(record(), 2)

    assert [(vote.grounded, vote.probability) for vote in found] == votes


async def test_background_is_read_as_further_contexts():
    judge = Told((0, "supported", 0.9))
    await judge.verify_claims(record(background=["It is iron."]), ["a"])

    assert judge.read == ["The tower opened in 1889.", "It is iron."]


async def test_without_contexts_nothing_is_asked_and_of_other_languages_it_says_so():
    assert await Told((0, "supported", 0.9)).verify_claims(record(contexts=[" "]), ["a"]) == []
    assert await Told((0, "supported", 0.9)).verify_claims(record(), []) == []
    german = record(
        response="Der Turm wurde im Jahr 1889 von einer Firma eröffnet.",
        contexts=["Der Turm ist von 1889 und nicht neu."],
    )
    with pytest.raises(JudgeError, match="told knows en, and not"):
        await Told().verify_claims(german, ["a"])
