"""Which pieces of long texts a response speaks of."""

from __future__ import annotations

import pytest

from ragspan.judges.selection import select

FILLER = [
    f"Section {place} tells of weather, of rivers and of the harbour in the usual words. " for place in range(400)
]


def shown(texts, response, most):
    return [(piece.text, texts[piece.text][piece.start : piece.end]) for piece in select(texts, response, most)]


@pytest.mark.parametrize(
    ("texts", "most", "found"),
    [
        (["one", "", "two"], 6, [(0, "one"), (2, "two")]),
        (["red apples", "blue"], 10, [(0, "red apples")]),
        (["red apples", "blue"], 9, []),
    ],
)
def test_texts_and_pieces_that_fit_are_whole_and_blank_ones_are_left_out(texts, most, found):
    assert shown(texts, "apples", most) == found


@pytest.mark.parametrize("place", [0, 57, 200, 399])
def test_what_the_response_rests_on_is_found_wherever_it_stands(place):
    sentences = list(FILLER)
    sentences[place] = "The lighthouse keeper Ottilie earned 1,240 crowns a year. "
    texts = ["".join(sentences[:150]), "".join(sentences[150:])]

    found = shown(texts, "Ottilie earned 1,240 crowns.", 2000)

    assert sum(len(text) for _, text in found) <= 2000
    assert any("Ottilie earned 1,240 crowns" in text for _, text in found)


def test_words_are_compared_by_their_stems_and_in_the_responses_language():
    sentences = ["Der Hafen liegt im Norden der Stadt, und die Boote fahren dort jeden Tag. "] * 300
    sentences[150] = "Die Versicherungen der Fischer kosteten 310 Kronen. "

    found = shown(["".join(sentences)], "Die Versicherung kostete für die Fischer 310 Kronen.", 900)

    assert any("310 Kronen" in text for _, text in found)
