"""Where claims stand, whoever made them."""

from __future__ import annotations

import pytest

from ragspan.judges.claim_places import locate

RESPONSE = "Hello! The bridge opened in 1932. It carries eight lanes of traffic."
CONTEXTS = [
    "Nothing of it here.",
    "Sydney is large. The bridge opened on 19 March 1932.\nIt has eight lanes. The traffic is dense.",
]


def texts(claims, response=RESPONSE, contexts=CONTEXTS):
    for sentence, supports in locate(claims, response, contexts):
        said = None if sentence is None else response[slice(*sentence)]
        yield said, [contexts[at.context][at.start : at.end] for at in supports]


def test_a_claim_stands_where_most_of_its_words_are():
    assert list(texts(["The bridge opened in 1932."])) == [
        ("The bridge opened in 1932.", ["The bridge opened on 19 March 1932."])
    ]


def test_a_claim_may_be_put_together_from_two_sentences():
    [(said, shown)] = texts(["Eight lanes, and dense traffic."])

    assert said == "It carries eight lanes of traffic."
    assert shown == ["It has eight lanes.", "The traffic is dense."]


def test_a_claim_without_half_of_its_words_anywhere_stands_nowhere():
    half, lacking = texts(["The bridge has penguins.", "The bridge was painted by sailors."])

    assert half == ("The bridge opened in 1932.", ["The bridge opened on 19 March 1932."])
    assert lacking == (None, [])


@pytest.mark.parametrize("more", [0, 1])
def test_of_a_response_30_000_characters_are_looked_through_and_of_contexts_80_000(more):
    response, contexts = f"{'a' * (29_995 + more)} 1932", ["a" * (79_996 + more), "1932"]
    [(place, parts)] = locate(["1932"], response, contexts)

    assert (place is None, len(parts)) == (more == 1, 1 - more)


def test_places_are_of_the_text_as_it_is():
    response = "\u201cQuoted\u201d \u2013 first.\n\n- The bridge\u00a0opened in 1932."

    assert next(texts(["The bridge opened in 1932."], response=response))[0] == "The bridge\u00a0opened in 1932."
