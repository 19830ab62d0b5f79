from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.judges.llm.fitting import fair_limit


@pytest.mark.parametrize(
    ("lengths", "room", "limit"),
    [
        ([], 100, 100),
        ([10, 20], 100, 100),
        ([1000], 100, 100),
        ([1000, 1000], 100, 50),
        ([10, 1000], 100, 90),
        ([1000, 10, 30, 1000], 100, 30),
        ([1, 1, 1], 2, 0),
    ],
)
def test_short_texts_leave_their_room_to_long_ones(lengths, room, limit):
    assert fair_limit(lengths, room) == limit


@given(st.lists(st.integers(0, 1000), max_size=20), st.integers(1, 2000))
def test_the_texts_fit_and_hardly_any_room_is_wasted(lengths, room):
    limit = fair_limit(lengths, room)

    taken = sum(min(length, limit) for length in lengths)
    assert taken <= room
    assert taken == sum(lengths) or room - taken < len(lengths)
