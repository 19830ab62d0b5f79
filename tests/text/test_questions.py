"""Sentences that restate a question, and those that answer it."""

from __future__ import annotations

import pytest

from ragspan.text.questions import restates


@pytest.mark.parametrize(
    ("claim", "question"),
    [
        ("You asked how high the lighthouse tower is.", "How high is the lighthouse tower?"),
        (
            "The user's question is what the refund period for gold members is.",
            "What is the refund period for gold members?",
        ),
        ("Die Jahresgebühr der Silberkarte.", "Wie hoch ist die Jahresgebühr der Silberkarte?"),
    ],
)
def test_a_restatement_is_known(claim, question):
    assert restates(claim, question)


@pytest.mark.parametrize(
    ("claim", "question"),
    [
        ("The annual fee is 49 euros.", "What is the annual fee?"),
        ("The annual fee is 49 euros.", "Is the annual fee 49 euros?"),
        ("The annual fee is 49 euros.", "The annual fee is 49 euros. What else do I pay?"),
        ("The silver card has an annual fee.", "What is the annual fee of the silver card in March for new customers?"),
    ],
)
def test_a_claim_that_says_more_or_takes_a_side_is_none(claim, question):
    assert not restates(claim, question)
