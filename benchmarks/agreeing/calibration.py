"""Whether a probability means what it says, and the two constants by which the embedded judge makes scores probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rich.table import Table
from rich.text import Text

from agreeing.judgements import Judgement, JudgementSet
from ragspan.exceptions import JudgeError
from ragspan.judges.screen.analysis import Analysis
from ragspan.judges.screen.grading import Grade, answer_score

Point: TypeAlias = tuple[float, float, float]
"""A score, its label as 0 or 1, and its weight."""

BINS = 10
_WIDTH = 50
_STEPS = 25


@dataclass(frozen=True, kw_only=True, slots=True)
class Bin:
    """The answers whose values lie in one tenth of the scale."""

    low: float
    high: float
    """Belongs to the next bin, but for the last one."""
    answers: int
    mean: float
    """Of the values."""
    share: float
    """Of the answers, how many people call supported, answers of both labels weighted alike."""


def bins_of(values: Sequence[float], labels: Sequence[bool]) -> list[Bin]:
    """Those of the ten bins that have answers in them.

    Both labels weigh the same in all, as where the embedded judge's constants come from: a probability of one half then
    means as likely supported as not, whatever the share of supported answers in a set.
    """
    weights = {label: 1 / labels.count(label) for label in set(labels)}
    members: dict[int, list[int]] = {}
    for at, value in enumerate(values):
        members.setdefault(min(BINS - 1, math.floor(value * BINS)), []).append(at)
    return [
        Bin(
            low=number / BINS,
            high=(number + 1) / BINS,
            answers=len(places),
            mean=sum(values[at] for at in places) / len(places),
            share=sum(weights[True] for at in places if labels[at]) / sum(weights[labels[at]] for at in places),
        )
        for number, places in sorted(members.items())
    ]


def plot(title: str, bins: Sequence[Bin]) -> Table:
    """A bar for the share in each bin, and a mark where it would end if values were probabilities."""
    table = Table(title=title)
    for heading in ("value", "answers", "mean", "supported"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("share supported; ┃ marks the mean value, where the bar should end", no_wrap=True)
    for one in bins:
        table.add_row(
            f"{one.low:.1f} to {one.high:.1f}", str(one.answers), f"{one.mean:.2f}", f"{one.share:.2f}", _bar(one)
        )
    return table


def _bar(one: Bin) -> Text:
    end, mark = round(one.share * _WIDTH), min(_WIDTH - 1, round(one.mean * _WIDTH))
    bar = Text("█" * end + "·" * (_WIDTH - end))
    return Text.assemble(bar[:mark], ("┃", "bold"), bar[mark + 1 :])


def fitted(sets: Sequence[JudgementSet]) -> tuple[float, float] | None:
    """Slope and middle of the embedded judge's map to probabilities, from the sources that are not held out.

    These are what `ragspan.judges.screen.grading` rounds. Sets and labels weigh the same. None where no curve is the
    best: a label is missing, or a score between both tells them apart.
    """
    points = [point for judged in sets for point in _weighted([one for one in judged.judgements if not one.held_out])]
    supported = [value for value, label, _ in points if label]
    others = [value for value, label, _ in points if not label]
    if not supported or not others or min(supported) >= max(others) or max(supported) <= min(others):
        return None
    return fit(points)


def _weighted(judgements: Sequence[Judgement]) -> list[Point]:
    """The raw scores of the answers that claim something."""
    graded = [(one.supported, _grades(one)) for one in judgements]
    labels = [supported for supported, grades in graded if grades]
    return [
        (answer_score(grades), float(supported), 1 / labels.count(supported)) for supported, grades in graded if grades
    ]


def _grades(judgement: Judgement) -> Sequence[Grade]:
    """None where the response is in another language than its contexts and cannot be compared."""
    try:
        return Analysis(judgement.record).grades
    except JudgeError:
        return ()


def fit(points: Sequence[Point]) -> tuple[float, float]:
    """Slope and middle of the weighted logistic regression of labels on scores, by Newton's method."""
    slope, offset = 1.0, 0.0
    for _ in range(_STEPS):
        a = b = aa = ab = bb = 0.0
        for value, label, weight in points:
            expected = 1 / (1 + math.exp(-slope * value - offset))
            error, curvature = weight * (expected - label), weight * expected * (1 - expected)
            a, b = a + error * value, b + error
            aa, ab, bb = aa + curvature * value * value, ab + curvature * value, bb + curvature
        determinant = aa * bb - ab * ab
        slope, offset = slope - (bb * a - ab * b) / determinant, offset - (aa * b - ab * a) / determinant
    return slope, -offset / slope
