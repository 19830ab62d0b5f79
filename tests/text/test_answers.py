"""Which characters of an answer state facts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.text.answers import stated, states_nothing


def left_of(answer):
    """What an answer states, on one line."""
    return " ".join(stated(answer).split()).replace(" .", ".").replace(" ,", ",")


@pytest.mark.parametrize(
    "mark",
    [
        " [1]",
        " [1, 2]",
        " (Source: warranty.pdf, p. 12)",
        " (Policy Handbook, 2023)",
        " ([source](https://example.com/w?id=12))",
        "【4†source】",
        "<sup>2</sup>",
        " [Handbook]",
    ],
)
def test_a_citation_states_nothing_wherever_it_stands(mark):
    assert (
        left_of(f"The warranty lasts 24 months{mark}. Returns are free.")
        == "The warranty lasts 24 months. Returns are free."
    )


@pytest.mark.parametrize(
    "fact",
    [
        "It opened in the capital (Paris, 1889).",
        "The room is 25 m² large.",
        "Payments are due in 30 days (45 for members).",
    ],
)
def test_what_looks_like_a_citation_and_states_a_fact_stays(fact):
    assert left_of(fact) == " ".join(fact.split())


@pytest.mark.parametrize(
    "sources",
    [
        "Sources:\n[1] warranty.pdf\n[2] returns.pdf",
        "Quellen:\n1. Garantie.pdf",
        "参考资料：\n- 保修.pdf",
    ],
)
def test_a_list_of_sources_states_nothing(sources):
    assert left_of(f"The warranty lasts 24 months.\n\n{sources}") == "The warranty lasts 24 months."


@pytest.mark.parametrize(
    ("framed", "fact"),
    [
        ("Based on the provided context, the warranty lasts 24 months.", "The warranty lasts 24 months."),
        ("The documentation states that the warranty lasts 24 months.", "The warranty lasts 24 months."),
        ("The port, according to the manual, is 5432.", "The port, is 5432."),
        ("Laut Handbuch beträgt die Garantie 24 Monate.", "Beträgt die Garantie 24 Monate."),
        ("Selon le contexte fourni, la garantie dure 24 mois.", "La garantie dure 24 mois."),
        ("提供された資料によると、保証期間は24か月です。", "保証期間は24か月です。"),
        ("根据提供的文档，保修期为24个月。", "保修期为24个月。"),
    ],
)
def test_a_phrase_that_names_the_source_hides_nothing_and_states_nothing(framed, fact):
    assert left_of(framed) == fact


def test_what_a_source_is_said_not_to_say_stays_whole():
    answer = "Based on the context, it is not possible to say when it opened. The text does not state that it is open."

    assert left_of(answer) == answer


@pytest.mark.parametrize(
    "polite",
    [
        "Hello! How can I help you today?",
        "Let me know if you need anything else!",
        "Gern geschehen!",
        "Если у вас есть вопросы, обращайтесь!",
        "お気軽にお問い合わせください。",
    ],
)
def test_greetings_offers_and_questions_back_state_nothing(polite):
    assert states_nothing(polite)


def test_thoughts_are_left_out_also_without_their_opening_tag():
    assert left_of("<think>It may be 12.</think>It is 24.") == "It is 24."
    assert left_of("It may be 12.</thinking>\nIt is 24.") == "It is 24."
    assert left_of("It is 24.\n<think>Is it 12") == "It is 24."


def test_headings_without_a_number_and_the_marks_of_code_and_tables_state_nothing():
    answer = "## Warranty\n\n| Product | Months |\n|---|---|\n| Lamp | 24 |\n\n```python\nconnect(port=5432)\n```"

    assert left_of(answer) == "| Lamp | 24 | connect(port=5432)"


@given(st.text(max_size=300))
def test_every_character_keeps_its_place(answer):
    assert len(stated(answer)) == len(answer)


def test_a_sentence_that_announces_a_table_states_nothing():
    table = "| Fare | Bags |\n|---|---|\n| Light | none |\n| Classic | one |"

    assert left_of(f"It depends on your fare:\n\n{table}").startswith("| Light")
    assert left_of(f"Two of 3 fares include bags:\n\n{table}").startswith("Two of 3 fares")
