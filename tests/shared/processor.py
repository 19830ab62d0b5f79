"""How much of the processor something takes, as on a machine that has the usual speed and nothing else to do.

Processor time is not free of what else a machine does: with shared caches and cores the same work takes two or three times as
long. So work that is always the same is measured beside it, and the cheapest of several tries counts. A test allows twice what
is promised all the same: what it looks for takes ten times as long.
"""

from __future__ import annotations

import time

USUAL = 0.035
"""Seconds that `_count_words` takes where nothing else runs."""


def seconds_of(*works, enough=0.0):
    """The least processor time of these, which are to cost the same; the first that takes no more than `enough` is the last."""
    taken = []
    for work in works:
        before = _slowness()
        began = time.process_time()
        work()
        seconds = time.process_time() - began
        taken.append(seconds / max(1.0, before, _slowness()))
        if taken[-1] <= enough:
            break
    return min(taken)


def _slowness():
    began = time.process_time()
    _count_words()
    return (time.process_time() - began) / USUAL


def _count_words():
    counts = {}
    for number in range(100_000):
        word = str(number)
        counts[word] = counts.get(str(number // 2), 0) + 1
