"""Numbers agree with what they count."""

from __future__ import annotations

import pytest

from ragspan.counted import counted


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (counted(0, "trace"), "0 traces"),
        (counted(1, "trace"), "1 trace"),
        (counted(12_000, "trace"), "12000 traces"),
        (counted(12_000, "row", grouped=True), "12,000 rows"),
        (counted(1, "refusal", "refusals"), "1 refusal"),
        (counted(2, "unsure", "unsure"), "2 unsure"),
    ],
)
def test_one_is_singular_and_large_numbers_are_grouped_for_people(said, expected):
    assert said == expected
