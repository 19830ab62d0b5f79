"""Where spans lie in time, in Unix nanoseconds.

OpenTelemetry accepts an end before the start in silence, and a negative time only fails when a whole batch is encoded,
so noted times are clamped.
"""

from __future__ import annotations

from typing import TypeAlias

from ragspan.records import RagRecord, Step

Interval: TypeAlias = tuple[int, int]

_ALL_TIME: Interval = (0, 2**63 - 1)


def answer_interval(record: RagRecord) -> Interval:
    return _clamped(record.started_ns, record.ended_ns, _ALL_TIME)


def step_interval(record: RagRecord, step: Step) -> Interval:
    """A step's times, inside the answer's; as they are where the answer's own times were never noted."""
    answer = answer_interval(record)
    return _clamped(step.started_ns, step.ended_ns, answer if answer[0] < answer[1] else _ALL_TIME)


def _clamped(started_ns: int, ended_ns: int, within: Interval) -> Interval:
    earliest, latest = within
    started_ns = min(max(started_ns, earliest), latest)
    return started_ns, min(max(ended_ns, started_ns), latest)
