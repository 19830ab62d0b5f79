"""What is kept of metadata takes about as much memory as it counts for."""

from __future__ import annotations

import decimal
import sys
import tracemalloc

import pytest

from ragspan.safe_copy import kept_entries, size_of


@pytest.mark.parametrize(
    "make",
    [
        lambda number: decimal.Decimal("1" * 100_000) + number,
        lambda number: decimal.Decimal(f"1.{number}" + "1" * 150),
        lambda number: 10**4000 + number,
        lambda number: 10**300 + number,
    ],
    ids=["long decimals", "decimals", "long integers", "integers"],
)
def test_numbers_with_many_digits_take_no_more_than_twice_what_they_count_for(make):
    with decimal.localcontext(decimal.Context(prec=200_000)):
        kept = kept_entries({f"n{number}": make(number) for number in range(100)}, nested=True)

    assert sys.getsizeof(kept) + sum(map(sys.getsizeof, kept.values())) <= 2 * size_of(kept)


@pytest.mark.parametrize("name", [str, lambda number: number], ids=["texts", "no texts"])
def test_of_very_many_entries_no_copy_is_made(name):
    metadata = {name(number): number for number in range(300_000)}
    tracemalloc.start()
    kept = kept_entries(metadata)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(kept) in {0, 200}
    assert most < 1_500_000


def test_usual_decimals_and_integers_are_kept():
    metadata = {"price": decimal.Decimal("1234.50"), "id": 2**256 + 1}

    assert kept_entries(metadata, nested=True) == metadata
