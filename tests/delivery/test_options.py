from __future__ import annotations

import pytest

from ragspan import ConfigurationError
from ragspan.delivery import DeliveryOptions


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("queue_size", 0),
        ("queue_bytes", 1.5),
        ("batch_size", True),
        ("linger", -1),
        ("linger", float("inf")),
        ("retry_window", 0),
        ("retry_window", "600"),
        ("retry_window", float("nan")),
    ],
)
def test_a_limit_that_cannot_be_is_named(name, value):
    with pytest.raises(ConfigurationError, match=f"^{name} is {value!r}, but should be a"):
        DeliveryOptions(**{name: value})
