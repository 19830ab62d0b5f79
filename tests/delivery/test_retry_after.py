from __future__ import annotations

import pytest

from ragspan.delivery.retry_after import retry_after


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("120", 120.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 60.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Thu, 99 Jan 1970 00:00:00 GMT", None),
    ],
)
def test_it_is_a_number_of_seconds_or_a_date(header, seconds):
    assert retry_after(header, clock=lambda: 40.0) == seconds
