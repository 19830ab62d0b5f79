"""Which characters of an answer state facts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.text.answers import stated, states_nothing

FACT = "The warranty lasts 24 months."
TABLE = "| Fare | Bags |\n|---|---|\n| Light | none |\n| Classic | one |"


def left_of(answer):
    """What an answer states, on one line."""
    return " ".join(stated(answer).split()).replace(" .", ".").replace(" ,", ",")


CITATIONS = " [1]¦ [1, 2]¦ (Source: warranty.pdf, p. 12)¦ (Policy Handbook, 2023)¦ ([source](https://example.com/w?id=12))¦【4†source】¦<sup>2</sup>¦ [Handbook]"


@pytest.mark.parametrize("mark", CITATIONS.split("¦"))
def test_a_citation_states_nothing_wherever_it_stands(mark):
    assert left_of(f"The warranty lasts 24 months{mark}. Returns are free.") == f"{FACT} Returns are free."


@pytest.mark.parametrize(
    ("answer", "fact"),
    [
        (f"{FACT}\n\nSources:\n[1] warranty.pdf\n[2] returns.pdf", FACT),
        (f"{FACT}\n\nQuellen:\n1. Garantie.pdf", FACT),
        (f"{FACT}\n\n参考资料：\n- 保修.pdf", FACT),
        ("Based on the provided context, the warranty lasts 24 months.", FACT),
        ("The documentation states that the warranty lasts 24 months.", FACT),
        ("The port, according to the manual, is 5432.", "The port, is 5432."),
        ("Laut Handbuch beträgt die Garantie 24 Monate.", "Beträgt die Garantie 24 Monate."),
        ("要するに、保証期間は24か月です。", "保証期間は24か月です。"),
        ("请注意，保修期为24个月。", "保修期为24个月。"),
        ("<think>It may be 12.</think>It is 24.", "It is 24."),
        ("It may be 12.</thinking>\nIt is 24.", "It is 24."),
        ("It is 24.\n<think>Is it 12", "It is 24."),
        ("## Warranty\n\n```python\nconnect(port=5432)\n```", "connect(port=5432)"),
        (f"It depends on your fare:\n\n{TABLE}", "| Light | none | | Classic | one |"),
    ],
)
def test_what_stands_around_a_fact_states_nothing(answer, fact):
    assert left_of(answer) == fact


@pytest.mark.parametrize(
    "fact",
    [
        "It opened in the capital (Paris, 1889).",
        "The room is 25 m² large.",
        "Payments are due in 30 days (45 for members).",
        "Based on the context, it is not possible to say when it opened. The text does not state that it is open.",
    ],
)
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
