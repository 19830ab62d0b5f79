"""Waiting for what other threads and processes do."""

from __future__ import annotations

import time

PATIENCE = 60.0  # seconds; only a test that fails waits for so long


def until(condition, *, what="that", patience=PATIENCE):
    """Wait until the condition gives something true, which is returned.

    Raises:
        AssertionError: it took too long.
    """
    limit = time.monotonic() + patience
    while not (found := condition()):
        assert time.monotonic() < limit, f"waited {patience:g} s for {what}"
        time.sleep(0.01)
    return found
