"""How judges read background."""

from __future__ import annotations

from ragspan.judges.background import MAX_SHOWN, shown_background
from ragspan.records import Background, RagRecord

FEE = "The annual fee of the silver card is 49 euros."
LONG = "It rained on many days of the year in the harbour. " * 1100


def record(**changes):
    return RagRecord(**({"question": "What?", "contexts": ["Cards are grey."], "response": FEE} | changes))


def test_of_long_background_a_judge_gets_what_the_response_speaks_of():
    background = [Background(text=f"{LONG[:25_000]}{FEE} {LONG[:25_000]}", kind="tool"), Background(text="It rained.")]

    shown = shown_background(record(background=background))

    assert sum(len(one.text) for one in shown) <= MAX_SHOWN
    assert any(FEE in one.text and one.kind == "tool" for one in shown)
