from __future__ import annotations

import pytest

from ragspan.judges.llm.prompt import lay_out, split_context
from ragspan.records import RagRecord


def test_of_contexts_of_which_not_even_a_few_words_fit_the_last_are_left_out():
    record = RagRecord(question="q", contexts=["x" * 6] * 10_000, response="r")
    shown = lay_out(record, max_context_chars=60_000, max_response_chars=100).contexts

    assert 200 < len(shown) < 60_000 / 90
    assert {*shown} == {"x" * 6}


# The sentences of contexts


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One. ", "Two! ", "Three?"]),
        ("A line\n\n  and another", ["A line\n\n  ", "and another"]),
        ("\u4e00\u3002\u4e8c\u3002", ["\u4e00\u3002", "\u4e8c\u3002"]),
        (" \n", []),
    ],
)
def test_a_context_is_split_at_the_ends_of_sentences_and_lines(text, sentences):
    assert split_context(text, 100) == sentences
