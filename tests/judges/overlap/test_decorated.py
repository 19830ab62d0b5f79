"""A verdict stays when an answer is decorated at random, as assistants decorate answers."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
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
    " [Policy Handbook](https://example.com/h.pdf)",
    " (Policy Handbook, section 3.2, p. 14)",
    " (from Document 1)",
    " [chunk_id: 12]",
    " [web:1]",
    " ^1^",
    " (accessed 12 May 2024)",
    " \\cite{smith2020}",
    "\uff08\u51fa\u5178\uff1a\u624b\u518a\u3001\u7b2c3\u9801\uff09",
    "\u3010 1\u2020source\u3011",
    " \u27e62\u27e7",
    " ((1))",
    "\u2020",
    " [S1-p4]",
    "$^{2}$",
    " [[doc:12]]",
    " \U0001f4c41",
    " (as shown in the table above)",
]
OPENINGS = [
    "",
    "Sure! ",
    "Great question! ",
    "**Answer:** ",
    "## Answer\n\n",
    "Here is what I found:\n\n",
    "Here's the answer: ",
    "Okay, ",
    "TL;DR: ",
    "<think>Let me look at 99 things.</think>\n",
    "<reasoning_steps>I count 77 things.</reasoning_steps>\n",
    '<tool_call>{"name": "search", "arguments": {"k": 12}}</tool_call>\n',
    "<|channel|>analysis<|message|>They want 88 things.<|end|><|channel|>final<|message|>",
    "Thought: I need to look up 55 pages.\nAction: search\nObservation: 3 documents\nFinal Answer: ",
    "Answer - ",
    "<answer>",
]
FRAMES = [
    "",
    "Based on the provided context, ",
    "According to the documents, ",
    "The documentation states that ",
    "I found that ",
    "As the handbook explains, ",
    "Looking at the documents, ",
    "It is clear from the context that ",
    "According to section 3 of the handbook, ",
    "I can tell you that ",
    "**Based** on the documents, ",
]
CLOSINGS = ["", " For more information, see the handbook.", "\n\nKind regards", " Source: handbook.pdf, p. 3", "\n\n1: policy.pdf\n2: faq.md", "\n\nLet me know if you need anything else!", " I hope this helps!", "\n\nWould you like to know more?", "\n\nSources:\n[1] policy.pdf\n[2] faq.md"]  # fmt: skip

METRICS = [metric(OverlapJudge(), causes=False) for metric in (ContextAdherence, Faithfulness)]


def labels_of(response):
    record = RagRecord(question="What are the rules?", contexts=CONTEXTS, response=response)
    outcomes = [asyncio.run(metric.score(record)) for metric in METRICS]
    return [outcome.label if isinstance(outcome, Score) else str(outcome) for outcome in outcomes]


def decorated(answer, mark, opening, frame, closing):
    marked = re.sub(r"\.(?= |$)", lambda stop: mark + stop[0], answer)
    return opening + (frame + marked[:1].lower() + marked[1:] if frame else marked) + closing


@pytest.mark.parametrize("answer", [*RIGHT, *WRONG])
@pytest.mark.parametrize("wrap", ["%s", "```json\n%s\n```"])
def test_an_answer_that_is_a_value_of_json_is_judged_as_it_is_without_the_rest(wrap, answer):
    expected = "pass" if answer in RIGHT else "fail"
    reply = wrap % json.dumps({"answer": f"{answer}\n", "sources": ["a.pdf"], "confidence": 0.92})

    assert labels_of(reply) == [expected, expected]


def test_a_sentence_that_names_its_source_twice_is_judged():
    said = "Overall, returns are free within 90 days of delivery, according to the handbook."

    assert labels_of(f"{RIGHT[1]} {said}") == ["fail", "fail"]


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
