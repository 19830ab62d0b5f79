"""What an alignment finds is what a plain search finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragspan.judges.overlap.context_reader import Context, Place
from ragspan.judges.overlap.shared_words import SharedWords
from ragspan.text.sentences import END, Sentence

words = st.sampled_from(["ant", "bee", "cat", "dog", "elk", "the", "of"])
FUNCTION_WORDS = {"the", "of"}
sentences = st.lists(words, min_size=1, max_size=6)
texts = st.lists(st.lists(sentences, max_size=7), max_size=5)


def aligned(claims, contexts):
    return SharedWords(
        [Sentence(text=" ".join(claim), words=tuple(claim), keys=tuple(claim)) for claim in claims],
        [Context([key for keys in text for key in (*keys, END)]) for text in contexts],
    )


def content(sentence):
    return [word for word in sentence if word not in FUNCTION_WORDS]


@given(texts, st.lists(sentences, min_size=1, max_size=4))
def test_the_best_window_has_most_words_of_a_claim_in_three_neighbours(contexts, claims):
    alignment = aligned(claims, contexts)

    for claim in claims:
        held, context = alignment.best_window(content(claim))
        windows = [
            (at, set().union(*text[start : start + 3]))
            for at, text in enumerate(contexts)
            for start in range(len(text))
        ]
        counts = [(sum(word in window for word in content(claim)), at) for at, window in windows]
        assert held == max((count for count, _ in counts), default=0)
        assert (context is None and not held) or (held, context) == max(counts, key=lambda count: (count[0], -count[1]))


@given(texts, sentences)
def test_the_closest_sentences_have_most_words_of_a_claim(contexts, claim):
    found = aligned([claim], contexts).closest(content(claim), 3)

    counts = [
        (-sum(word in sentence for word in content(claim)), Place(context, at))
        for context, text in enumerate(contexts)
        for at, sentence in enumerate(text)
    ]
    assert found == [place for count, place in sorted(counts)[:3] if count]
