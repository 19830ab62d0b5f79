"""A verdict stays when an answer is decorated at random, as assistants decorate answers."""

from __future__ import annotations

import asyncio
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from ragspan import RagRecord
from ragspan.judges import OverlapJudge
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.outcomes import Score

CONTEXTS = [
    "The handbook says that returns are free within 30 days of delivery. Refunds are paid within five working days.",
    "Orders above 49 euros are shipped for free. The Basic plan costs 5 euros a month, and the Pro plan 20 euros a month.",
]
RIGHT = [
    "Returns are free within 30 days of delivery.",
    "Refunds are paid within five working days. Orders above 49 euros are shipped for free.",
    "The Basic plan costs 5 euros a month, and the Pro plan 20 euros a month.",
]
WRONG = [
    "Returns are free within 90 days of delivery.",
    "Refunds are paid within nine working days. Orders above 49 euros are shipped for free.",
    "The Basic plan costs 20 euros a month, and the Pro plan 5 euros a month.",
]
MARKS = [
    "",
    " [1]",
    " [doc2]",
    "[^1]",
    " (Source: policy.pdf, p. 12)",
    " [[3]](https://example.com/w)",
    "\u3010 1\u2020source\u3011",
]
OPENINGS = [
    "",
    "Sure! ",
    "Great question! ",
    "**Answer:** ",
    "## Answer\n\n",
    "Here is what I found:\n\n",
    "<think>Let me look at 99 things.</think>\n",
]
FRAMES = [
    "",
    "Based on the provided context, ",
    "According to the documents, ",
    "The documentation states that ",
    "I found that ",
]
CLOSINGS = ["", "\n\nLet me know if you need anything else!", " I hope this helps!", "\n\nWould you like to know more?", "\n\nSources:\n[1] policy.pdf\n[2] faq.md"]  # fmt: skip

METRICS = [metric(OverlapJudge(), causes=False) for metric in (ContextAdherence, Faithfulness)]


def labels_of(response):
    record = RagRecord(question="What are the rules?", contexts=CONTEXTS, response=response)
    outcomes = [asyncio.run(metric.score(record)) for metric in METRICS]
    return [outcome.label if isinstance(outcome, Score) else str(outcome) for outcome in outcomes]


def decorated(answer, mark, opening, frame, closing):
    marked = re.sub(r"\.(?= |$)", f"{mark}.", answer)
    return opening + (frame + marked[:1].lower() + marked[1:] if frame else marked) + closing


@settings(deadline=None, max_examples=80)
@given(
    answer=st.sampled_from([*RIGHT, *WRONG]),
    mark=st.sampled_from(MARKS),
    opening=st.sampled_from(OPENINGS),
    frame=st.sampled_from(FRAMES),
    closing=st.sampled_from(CLOSINGS),
)
def test_right_answers_pass_and_wrong_ones_fail_however_they_are_decorated(answer, mark, opening, frame, closing):
    expected = "pass" if answer in RIGHT else "fail"

    assert labels_of(decorated(answer, mark, opening, frame, closing)) == [expected, expected]
