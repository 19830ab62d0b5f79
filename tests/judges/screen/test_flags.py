"""Flags of a JSON context, and sentences that say the opposite."""

from __future__ import annotations

import json

import pytest

from ragspan import RagRecord
from ragspan.judges import OverlapJudge
from ragspan.metrics import ContextAdherence

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


async def contradicted(sentence, *contexts):
    """What a fail quotes of the context; None where the response does not fail."""
    record = RagRecord(question=None, contexts=contexts or [json.dumps(BUSINESS)], response=sentence)
    score = await ContextAdherence(OverlapJudge(), polls=1).score(record)
    return score.explanation.partition("but the context has ")[2] if score.label == "fail" else None


@pytest.mark.parametrize(
    ("sentence", "held"),
    [
        ("There is outdoor seating.", "Outdoor Seating: false"),
        ("They accept reservations but have no garage.", "Restaurants Reservations: false"),
        ("It does not offer takeout.", "Restaurants Take Out: true"),
        ("They have a happy hour.", "Happy Hour: null"),
    ],
)
async def test_the_opposite_of_a_flag_is_a_conflict(sentence, held):
    assert await contradicted(sentence) == f'"{held}".'


@pytest.mark.parametrize(
    "sentence",
    [
        "There is no outdoor seating.",
        "It does not offer WiFi, reservations, or outdoor seating.",
        "While there is no garage, street parking is available.",
    ],
)
async def test_what_agrees_with_the_flags_or_leaves_them_open_is_no_conflict(sentence):
    assert await contradicted(sentence) is None


@pytest.mark.parametrize(
    "contexts",
    [
        [json.dumps(BUSINESS), "We loved the outdoor seating under the trees."],
        [json.dumps([{"OutdoorSeating": True}, {"OutdoorSeating": False}])],
    ],
)
async def test_a_flag_contradicts_nothing_when_another_place_says_otherwise(contexts):
    assert await contradicted("There is outdoor seating.", *contexts) is None
