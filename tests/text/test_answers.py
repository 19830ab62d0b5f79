"""Which characters of an answer state facts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.text.answers import stated, states_nothing

FACT = "The warranty lasts 24 months."
ANSWERS = json.loads(Path(__file__).with_name("answers.json").read_text("utf-8"))


def left_of(answer):
    """What an answer states, on one line."""
    return " ".join(stated(answer).split()).replace(" .", ".").replace(" ,", ",")


@pytest.mark.parametrize("mark", ANSWERS["citations"])
def test_a_citation_states_nothing_wherever_it_stands(mark):
    assert left_of(f"The warranty lasts 24 months{mark}. Returns are free.") == f"{FACT} Returns are free."


@pytest.mark.parametrize(("answer", "fact"), ANSWERS["what stands around a fact"])
def test_what_stands_around_a_fact_states_nothing(answer, fact):
    assert left_of(answer) == fact


@pytest.mark.parametrize("fact", ANSWERS["what stays"])
def test_what_looks_like_a_decoration_and_states_a_fact_stays(fact):
    assert left_of(fact) == fact


@pytest.mark.parametrize(
    "polite", ["Hello! How can I help you today?", "Let me know if you need anything else!", "Gern geschehen!", "お気軽にお問い合わせください。"]
)  # fmt: skip
def test_greetings_offers_and_questions_back_state_nothing(polite):
    assert states_nothing(polite)


@given(st.text(max_size=300))
def test_every_character_keeps_its_place(answer):
    assert len(stated(answer)) == len(answer)
