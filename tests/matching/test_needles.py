import random
import re

import pytest

from ragspan.matching import Needles, PromptTexts

RANDOM = random.Random(1)


def words(count):
    return " ".join("".join(RANDOM.choices("abcdefgh", k=RANDOM.randint(2, 8))) for _ in range(count))


def places(texts, text):
    return sorted((match.start(), each) for each in texts for match in re.finditer(f"(?={re.escape(each)})", text))


@pytest.mark.parametrize("lengths", [(3, 9), (15, 30), (31, 300), (3, 300)])
@pytest.mark.parametrize("count", [1, 40, 3000])
def test_all_places_of_all_texts_are_found_whatever_their_length(lengths, count):
    texts = list(dict.fromkeys(words(100)[: RANDOM.randint(*lengths)] for _ in range(count)))
    text = "".join(RANDOM.choice(texts) + RANDOM.choice(["", " ", "\n\n", "xyz"]) for _ in range(60))

    assert sorted(Needles(texts).places_in(text)) == places(texts, text)


def test_texts_that_overlap_or_hold_one_another_are_all_found():
    texts = [
        "The pump runs at night, and the boiler by day.",
        "and the boiler by day. The rest waits.",
        "pump runs at night",
    ]
    text = "The pump runs at night, and the boiler by day. The rest waits."

    assert sorted(Needles(texts).places_in(text)) == places(texts, text)


def test_texts_that_repeat_themselves_are_given_up_and_that_is_known():
    needles = Needles([f"{'a ' * 300}b{number}" for number in range(500)])

    assert list(needles.places_in("a " * 100_000)) == []
    assert needles.is_exhausted


@pytest.mark.parametrize("order", [None, [0]])
def test_texts_stand_where_they_are_in_any_order_and_their_other_spellings_are_not_beside_them(order):
    texts = [f"Fact {number}: {words(9)}." for number in range(30)]
    shuffled = RANDOM.sample(texts, k=len(texts))
    plain = PromptTexts(["Use this:\n" + "\n\n".join(shuffled) + "\nAnswer!"])
    twice = PromptTexts(["Use this:\n" + "\n\n".join(shuffled) + "\n" + texts[3].upper() + "\nAnswer!"])

    for prompts in (plain, twice):
        assert [[match.whole for match in own] for own in prompts.find(texts, order=order)] == [[True]] * 30
        free = [prompts.parts[0][slice(*span)].strip("\n .") for span in prompts.free(0)]
        assert [piece for piece in free if piece] == ["Use this:", "Answer!"]
