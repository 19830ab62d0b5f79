"""What the metrics do alike with a judge's verdicts: demand enough of them, and turn a judge's error into a failure."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from typing import Protocol, TypeVar

from ragspan.exceptions import JudgeError
from ragspan.judges.base import NOT_APPLICABLE
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome


class Numbered(Protocol):
    @property
    def index(self) -> int: ...


_Verdict = TypeVar("_Verdict", bound=Numbered)


async def outcome_of(scoring: Awaitable[Outcome]) -> Outcome:
    """The outcome of scoring; a `JudgeError` becomes the failure that it means, or what does not apply."""
    try:
        return await scoring
    except JudgeError as error:
        if error.error_type in NOT_APPLICABLE:
            return NotApplicable(reason=error.error_type, detail=str(error))
        return MetricFailure(error_type=error.error_type, message=str(error), outage=error.outage)


def quorum_failure(kind: str, *, asked: int, valid: int) -> MetricFailure | None:
    """The failure when no more than half of the independent verdicts that were asked for are there."""
    if 2 * valid > asked:
        return None
    message = f"{valid} of {asked} {kind} are valid, but more than half have to be"
    return MetricFailure(error_type="missing_verdicts", message=message)


def first_by_index(verdicts: Iterable[_Verdict], count: int) -> dict[int, _Verdict]:
    """The first verdict for each of `count` things; further ones and those for other indices do not count."""
    first: dict[int, _Verdict] = {}
    for verdict in verdicts:
        if 0 <= verdict.index < count:
            first.setdefault(verdict.index, verdict)
    return first


def gap_failure(kind: str, verdicts: Mapping[int, object], count: int) -> MetricFailure | None:
    """The failure when one of `count` things has no verdict."""
    missing = count - len(verdicts)
    if not missing:
        return None
    return MetricFailure(error_type="missing_verdicts", message=f"{missing} of {count} {kind} have no verdict")
