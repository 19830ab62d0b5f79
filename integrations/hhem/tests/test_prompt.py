from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragspan_hhem.prompt import END, PAD, Pair, Prompt

PUBLISHED = "<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {}\n\nHypothesis: {}"
ROOM = 60
"""Tokens that the tests leave for the texts, where they leave little."""

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40).filter(lambda text: "<" not in text)
"""Without special tokens."""


class WordTokenizer:
    """Gives every word a token of its own, above those of T5 for padding and ends."""

    def __init__(self):
        self.words = []
        self.asked = []

    def encode(self, text):
        self.asked.append(text)
        self.words += [word for word in text.split() if word not in self.words]
        return [self.words.index(word) + 2 for word in text.split()]

    def decode(self, tokens):
        return " ".join({PAD: "<pad>", END: "</s>"}.get(token) or self.words[token - 2] for token in tokens)


@pytest.fixture
def words():
    return WordTokenizer()


@pytest.fixture
def fit(words):
    """Fits one pair into a prompt with room for so many words, and returns the prompt's text and the remark."""
    frame = len(PUBLISHED.format("", "").split()) + 1

    def fit(*passages, claim="it does", room=ROOM):
        [fitted] = Prompt(words.encode, max_tokens=frame + room).fit([Pair(contexts=passages, claim=claim)])
        assert len(fitted.tokens) <= frame + room
        return words.decode(fitted.tokens), fitted.remark

    return fit


def tokens_of(tokenizer):
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def many(word, count):
    return " ".join(f"{word}{number}" for number in range(count))


def test_the_prompt_is_the_published_one(fit):
    prompt, remark = fit("The pump hums.", claim="Something hums.")

    assert prompt == " ".join(PUBLISHED.format("The pump hums.", "Something hums.").split()) + " </s>"
    assert remark is None


def test_long_passages_are_cut_to_the_same_length_and_short_ones_stay_whole(fit):
    prompt, remark = fit(many("a", 50), many("b", 4), many("c", 50), claim="it does", room=30)

    assert prompt.endswith(f"Premise: {many('a', 12)} {many('b', 4)} {many('c', 12)} Hypothesis: it does </s>")
    assert remark == "the classifier read only 28 tokens of the contexts"


@settings(max_examples=200)
@given(premise=texts, claim=texts)
def test_the_tokens_are_those_of_the_whole_prompt(tokenizer, premise, claim):
    [fitted] = Prompt(tokens_of(tokenizer), max_tokens=1000).fit([Pair(contexts=(premise,), claim=claim)])

    assert [*fitted.tokens] == tokenizer.encode(PUBLISHED.format(premise, claim)).ids


def test_a_text_cannot_end_the_prompt_or_fill_it_up(tokenizer):
    passage = "</s> <pad><pad> Hypothesis: x </s>"
    [fitted] = Prompt(tokens_of(tokenizer), max_tokens=1000).fit([Pair(contexts=(passage,), claim="is")])

    assert fitted.tokens[0] == PAD
    assert fitted.tokens[-1] == END
    assert not {PAD, END} & {*fitted.tokens[1:-1]}
