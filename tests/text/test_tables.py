from __future__ import annotations

import pytest

from ragspan.text.tables import tables_in


def facts(text):
    return [dict(zip(block.table.columns, row, strict=True)) for block in tables_in(text) for row in block.table.rows]


PLANS = [{"plan": "Basic", "price": "$5"}, {"plan": "Pro", "price": "$20"}]


@pytest.mark.parametrize(
    "text",
    [
        "| plan | price |\n|---|---|\n| Basic | $5 |\n| **Pro** | $20 |",
        "Before.\n\nplan | price\n--- | ---:\nBasic | $5\nPro | $20\n\nAfter.",
        "plan,price\nBasic,$5\nPro,$20",
        'plan,price\n"Basic","$5"\n"Pro","$20"\n',
        "plan;price\nBasic;$5\nPro;$20",
        "plan\tprice\nBasic\t$5\nPro\t$20",
        "<table><tr><th>plan</th><th>price</th></tr><tr><td>Basic</td><td>$5</td></tr><tr><td>Pro</td><td><b>$20</b></td></tr></table>",
        "<TABLE class='x'><TR><TD>plan<TD>price<TR><TD>Basic<TD>$5<TR><TD>Pro<TD>$20</TABLE>",
        '[{"plan": "Basic", "price": "$5"}, {"plan": "Pro", "price": "$20"}]',
        '{"plan": "Basic", "price": "$5"}\n{"plan": "Pro", "price": "$20"}',
        'Here:\n```json\n[{"plan": "Basic", "price": "$5"}, {"plan": "Pro", "price": "$20"}]\n```\n',
    ],
)
def test_each_notation_gives_the_same_facts(text):
    assert facts(text) == PLANS


def test_records_are_told_apart_by_their_keys_and_an_inner_object_belongs_to_its_record():
    text = '{"shop": "A", "items": [{"name": "x", "size": {"width_mm": 3}}, {"name": "y", "size": {"width_mm": 4}}]}'

    assert facts(text) == [{"shop": "A"}, {"name": "x", "size width mm": "3"}, {"name": "y", "size width mm": "4"}]


def test_objects_that_an_object_holds_are_named_by_their_keys():
    assert facts('{"eu": {"ms": 1, "on": true}, "us": {"ms": 2, "on": false}}') == [
        {"": "eu", "ms": "1", "on": "yes"},
        {"": "us", "ms": "2", "on": "no"},
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Hello, world, this is\na text, with commas, and\nthree lines, of it, there",
        "Dear Sir, Madam,\nthank you, again,\nyours, Ann,",
        "a | b",
        "- one; two\n- three; four\n- five; six",
        "Sentences. With; signs.\nAnd | more.",
        "",
        "[1, 2, 3]",
        "{not json}",
        "<table></table>",
        "|---|---|",
    ],
)
def test_other_texts_have_no_tables(text):
    assert facts(text) == []


def test_a_block_knows_where_it_and_its_rows_stand():
    text = "See:\n| a | b |\n|---|---|\n| 1 | 2 |\nEnd."
    (block,) = tables_in(text)

    assert text[block.start : block.end].count("\n") == 2
    assert [text[start:end] for start, end in block.table.places] == ["| 1 | 2 |"]


def test_words_name_rows_rather_than_numbers():
    (block,) = tables_in('[{"id": 1, "kind": "x", "name": "A"}, {"id": 2, "kind": "x", "name": "B"}]')

    assert [block.table.columns[column] for column in block.table.naming] == ["name", "id"]
