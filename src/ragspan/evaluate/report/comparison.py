"""Two runs side by side: what became better or worse, over the answers that both have scores of.

Answers are paired by record id where the runs have ids in common, else by row number. What only one run has is counted
and left out of the differences. The scores of both runs are held in memory, without texts.
"""

from __future__ import annotations

import heapq
import math
import operator
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from ragspan.evaluate.evaluated import Evaluation
from ragspan.evaluate.row_file import ResultFile
from ragspan.evaluate.rows import named_judge
from ragspan.evaluate.summaries import deviation_of
from ragspan.outcomes import Label, Score

Verdict: TypeAlias = Literal["better", "worse", "no clear difference", "nothing to compare"]
FALLS_SHOWN = 20
_DEVIATIONS = 1.96  # of a normal distribution, between which 95 % of it lie


class Regression(NamedTuple):
    """A score that fell."""

    row: int
    record_id: str
    before: float
    after: float
    label_before: Label | None
    label_after: Label | None

    @property
    def fall(self) -> float:
        return self.before - self.after

    @property
    def is_newly_failing(self) -> bool:
        return (self.label_before, self.label_after) == ("pass", "fail")


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricComparison:
    """One metric in both runs. `mean` and `baseline_mean` are over the same answers: those that both runs scored."""

    metric: str
    pairs: int = 0
    """Answers that have a score in both runs."""
    mean: float | None = None
    baseline_mean: float | None = None
    interval: tuple[float, float] | None = None
    """95 % interval of the difference; None for fewer than two pairs."""
    newly_passing: int = 0
    newly_failing: int = 0
    falls: Sequence[Regression] = ()
    """At most `FALLS_SHOWN`: those that passed before and fail now come first, then the largest."""

    @property
    def difference(self) -> float | None:
        """Mean less the baseline's; positive is better."""
        return None if self.mean is None or self.baseline_mean is None else self.mean - self.baseline_mean

    @property
    def verdict(self) -> Verdict:
        """What the interval says: a difference is clear if zero is outside."""
        if not self.pairs:
            return "nothing to compare"
        low, high = self.interval or (0.0, 0.0)
        return "better" if low > 0 else "worse" if high < 0 else "no clear difference"


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """A run and its baseline."""

    metrics: tuple[MetricComparison, ...]
    paired_by: Literal["record id", "row number"]
    in_both: int
    """Answers."""
    only_here: int
    only_in_baseline: int
    cautions: tuple[str, ...] = ()
    """Reasons why scores may differ though no answer does."""


class _ComparedAnswer(NamedTuple):
    row: int
    record_id: str
    scores: dict[str, tuple[float, Label | None]]
    """By metric."""


def compare(run: Evaluation | ResultFile, baseline: Evaluation | ResultFile) -> Comparison:
    """What changed from the baseline to this run."""
    (answers, judges), (answers_before, judges_before) = _read(run), _read(baseline)
    known = {answer.record_id for answer in answers_before}
    # An id may only name the row: any table has such a one.
    by_id = any(answer.record_id in known and answer.record_id != f"row-{answer.row}" for answer in answers)
    here, before = _by_key(answers, by_id=by_id), _by_key(answers_before, by_id=by_id)
    pairs = [(here[key], before[key]) for key in here if key in before]
    metrics = dict.fromkeys([*run.metrics, *(metric for answer in answers_before for metric in answer.scores)])
    return Comparison(
        metrics=tuple(_metric_comparison(metric, pairs) for metric in metrics),
        paired_by="record id" if by_id else "row number",
        in_both=len(pairs),
        only_here=len(here) - len(pairs),
        only_in_baseline=len(before) - len(pairs),
        cautions=tuple(
            f"{metric} was judged by {', '.join(sorted(names))} here and by {', '.join(sorted(judges_before[metric]))} in the"
            " baseline: scores of different judges or versions of prompts should not be compared."
            for metric, names in judges.items()
            if judges_before.get(metric, names) != names
        ),
    )


def _read(run: Evaluation | ResultFile) -> tuple[list[_ComparedAnswer], Mapping[str, set[str]]]:
    """The scores of each answer, and who judged each metric. Where a judge has a share, the embedded judge has read all rows."""
    answers: list[_ComparedAnswer] = []
    judges: defaultdict[str, set[str]] = defaultdict(set)
    for row in run.all_rows() if isinstance(run, Evaluation) else run.rows():
        answer = _ComparedAnswer(row.row, row.record.record_id, {})
        answers.append(answer)
        for metric, score in row.outcomes.items():
            if not isinstance(score, Score):
                continue
            if score.screen is not None:
                answer.scores[metric] = (score.screen.value, score.screen.label)
                continue
            if row.asked is None or score.fallback is not None:
                answer.scores[metric] = (score.value, score.label)
            if (judge := named_judge(score)) is not None:
                judges[metric].add(judge)
    return answers, judges


def _by_key(answers: Sequence[_ComparedAnswer], *, by_id: bool) -> dict[tuple[str, int] | int, _ComparedAnswer]:
    """By row number; or by record id, and how many answers with this id came before."""
    if not by_id:
        return {answer.row: answer for answer in answers}
    seen: Counter[str] = Counter()
    keyed: dict[tuple[str, int] | int, _ComparedAnswer] = {}
    for answer in answers:
        keyed[answer.record_id, seen[answer.record_id]] = answer
        seen[answer.record_id] += 1
    return keyed


def _metric_comparison(metric: str, pairs: Sequence[tuple[_ComparedAnswer, _ComparedAnswer]]) -> MetricComparison:
    changes = [
        Regression(one.row, one.record_id, earlier, now, label_before, label)
        for one, other in pairs
        if metric in one.scores and metric in other.scores
        for (now, label), (earlier, label_before) in [(one.scores[metric], other.scores[metric])]
    ]
    labels = [(change.label_before, change.label_after) for change in changes]
    falls = (change for change in changes if change.fall > 0)
    return MetricComparison(
        metric=metric,
        pairs=len(changes),
        mean=statistics.fmean(change.after for change in changes) if changes else None,
        baseline_mean=statistics.fmean(change.before for change in changes) if changes else None,
        interval=interval_of_mean([-change.fall for change in changes]),
        newly_passing=labels.count(("fail", "pass")),
        newly_failing=labels.count(("pass", "fail")),
        falls=heapq.nlargest(FALLS_SHOWN, falls, key=operator.attrgetter("is_newly_failing", "fall")),
    )


def interval_of_mean(differences: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of the mean: 1.96 standard errors to each side; None for fewer than two differences."""
    count = len(differences)
    if count <= 1:
        return None
    mean = math.fsum(differences) / count
    reach = _DEVIATIONS * deviation_of(differences, mean) / math.sqrt(count)
    return mean - reach, mean + reach
