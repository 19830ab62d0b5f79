"""Scores that are the mean of independent ratings."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from fractions import Fraction
from functools import partial

from ragspan.judges.base import Rating
from ragspan.metrics._polling import poll_at_once, poll_until_settled
from ragspan.metrics._scores import Named, judged_score
from ragspan.metrics._verdicts import quorum_failure
from ragspan.outcomes import Outcome
from ragspan.records import RagRecord


async def poll_ratings(
    record: RagRecord,
    judge: Named,
    ask: Callable[[int], Awaitable[list[Rating]]],
    *,
    polls: int,
    threshold: float,
    early_stop: bool,
) -> Outcome:
    """The mean of the valid ratings, or the failure that there are too few.

    Raises:
        JudgeError: there is none at all.
    """
    if early_stop:
        is_settled = partial(cannot_cross, polls=polls, threshold=threshold)
        poll = await poll_until_settled(ask, polls, is_valid=_is_valid, is_settled=is_settled)
    else:
        poll = await poll_at_once(ask, polls, is_valid=_is_valid)
    failure = quorum_failure("ratings", asked=polls, valid=len(poll.valid))
    if failure:
        return failure
    values = [rating.value for rating in poll.valid]
    return judged_score(
        record,
        judge,
        value=float(mean(values)),
        explanation=poll.valid[closest_to_mean(values)].explanation,
        threshold=threshold,
        evidence=poll.valid,
        details={"ratings": poll.asked, "valid_ratings": len(poll.valid), "spread": spread(values)},
    )


def cannot_cross(ratings: Sequence[Rating], *, polls: int, threshold: float) -> bool:
    """Whether the mean stays on its side of the threshold, whatever the ratings are that are still to be had.

    They are from 0 to 1, and some may not come: means of fewer lie between the two that are looked at.
    """
    values = [rating.value for rating in ratings]
    rest = polls - len(values)
    lowest, highest = float(mean([*values, *[0.0] * rest])), float(mean([*values, *[1.0] * rest]))
    return lowest >= threshold or highest < threshold


def mean(values: Sequence[float]) -> Fraction:
    """The exact mean of the decimals that the judge wrote.

    Exact, because equal distances to the mean must compare equal: in binary 0.4 is closer to the mean of 0.2 and 0.4
    than 0.2 is.
    """
    if _agree(values):
        return _decimal(values[0])
    return sum(map(_decimal, values), Fraction()) / len(values)


def closest_to_mean(values: Sequence[float]) -> int:
    """The index of the value closest to the mean, the first of equals."""
    if _agree(values):
        return 0
    centre = mean(values)
    return min(range(len(values)), key=lambda index: abs(_decimal(values[index]) - centre))


def spread(values: Sequence[float]) -> float:
    """The population's standard deviation."""
    if _agree(values):
        return 0.0
    centre = mean(values)
    return math.sqrt(sum((_decimal(value) - centre) ** 2 for value in values) / len(values))


def _agree(values: Sequence[float]) -> bool:
    """Whether they are all the same, as those of a deterministic judge are: exact fractions take time."""
    return values.count(values[0]) == len(values)


def _decimal(value: float) -> Fraction:
    return Fraction(repr(float(value)))


def _is_valid(rating: Rating) -> bool:
    return 0 <= rating.value <= 1
