"""How long a server asks to be left alone, as HTTP says it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime


def retry_after(header: str | None, *, clock: Callable[[], float] = time.time) -> float | None:
    """Seconds, 0 or more, of a `Retry-After` header: a number or a date; None if it says nothing that can be read.

    Args:
        header: its value; None if there is none.
        clock: the time of day, in seconds since 1970.
    """
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - clock()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
