from __future__ import annotations

import json

import pytest

from ragspan.judges.screen.contexts import ContextReader
from ragspan.judges.screen.flags import find_conflicts, read_topics

BUSINESS = {
    "name": "Blue Door",
    "attributes": {
        "OutdoorSeating": False,
        "RestaurantsTakeOut": True,
        "RestaurantsReservations": "no",
        "RestaurantsGoodForGroups": True,
        "WiFi": "no",
        "HappyHour": None,
        "Parking": {"garage": False, "street": True},
    },
}


@pytest.fixture
def conflicts():
    def of(sentence, *passages):
        topics = read_topics(ContextReader().read(passages or [json.dumps(BUSINESS)]))
        return tuple(topic.name for topic in find_conflicts(sentence, topics))

    return of


@pytest.mark.parametrize(
    ("sentence", "topics"),
    [
        ("There is outdoor seating.", ("outdoor seating",)),
        ("They accept reservations but have no garage.", ("reservations",)),
        ("It does not offer takeout.", ("take out",)),
        ("No street parking, although they have a garage.", ("garage", "street")),
    ],
)
def test_the_opposite_of_a_flag_is_a_conflict(conflicts, sentence, topics):
    assert set(conflicts(sentence)) == set(topics)


@pytest.mark.parametrize(
    "sentence",
    [
        "There is no outdoor seating.",
        "It does not offer WiFi, reservations, or outdoor seating.",
        "While there is no garage, street parking is available.",
        "Street musicians with old guitars are not rare.",
    ],
)
def test_what_agrees_with_the_flags_or_leaves_them_open_is_no_conflict(conflicts, sentence):
    assert conflicts(sentence) == ()


def test_a_flag_contradicts_nothing_when_the_passages_speak_of_its_topic_elsewhere(conflicts):
    review = "We loved the outdoor seating under the trees."

    assert conflicts("There is outdoor seating.", json.dumps(BUSINESS), review) == ()


def test_a_flag_with_different_values_in_one_answer_contradicts_nothing(conflicts):
    both = json.dumps([{"OutdoorSeating": True}, {"OutdoorSeating": False}])

    assert conflicts("There is outdoor seating.", both) == ()
