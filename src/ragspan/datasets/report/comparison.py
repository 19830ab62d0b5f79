"""Two runs side by side: what became better or worse, over the answers that both have scores of.

Answers are paired by record id where the runs have ids in common, else by row number. What only one run has is counted
and left out of the differences. The scores of both runs are held in memory, without texts.
"""

from __future__ import annotations

import heapq
import operator
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from ragspan.datasets.result_file import ResultFile
from ragspan.datasets.results import Evaluation, named_judge
from ragspan.outcomes import Label

Verdict: TypeAlias = Literal["better", "worse", "no clear difference", "nothing to compare"]
FALLS_SHOWN = 20
RESAMPLES = 2_000
_CONFIDENCE = 0.95
_SEED = 20_260_101
_GROUPS = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricComparison:
    """One metric in both runs. `mean` and `baseline_mean` are over the same answers: those that both runs scored."""

    metric: str
    pairs: int = 0
    """Answers that have a score in both runs."""
    mean: float | None = None
    baseline_mean: float | None = None
    interval: tuple[float, float] | None = None
    """95 % bootstrap interval of the difference; None for fewer than two pairs."""
    newly_passing: int = 0
    newly_failing: int = 0
    only_here: int = 0
    """Scores that have no counterpart in the baseline."""
    only_in_baseline: int = 0

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
class Regression:
    """A score that fell."""

    metric: str
    row: int
    record_id: str
    before: float
    after: float
    label_before: Label | None = None
    label_after: Label | None = None

    @property
    def fall(self) -> float:
        return self.before - self.after

    @property
    def is_newly_failing(self) -> bool:
        return (self.label_before, self.label_after) == ("pass", "fail")


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
    falls: Mapping[str, Sequence[Regression]] = field(default_factory=dict)
    """By metric, at most `FALLS_SHOWN`: those that passed before and fail now come first, then the largest."""


class _Answer(NamedTuple):
    row: int
    record_id: str
    scores: dict[str, tuple[float, Label | None]]
    """By metric."""


def compare(run: Evaluation | ResultFile, baseline: Evaluation | ResultFile) -> Comparison:
    """What changed from the baseline to this run."""
    (answers, judges), (answers_before, judges_before) = _read(run), _read(baseline)
    known = {answer.record_id for answer in answers_before}
    by_id = any(answer.record_id in known and not _is_a_row(answer) for answer in answers)
    here, before = _by_key(answers, by_id=by_id), _by_key(answers_before, by_id=by_id)
    pairs = [(here[key], before[key]) for key in here if key in before]
    metrics = dict.fromkeys([*run.metrics, *(metric for answer in answers_before for metric in answer.scores)])
    return Comparison(
        metrics=tuple(_metric_comparison(metric, pairs, answers, answers_before) for metric in metrics),
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
        falls={metric: _falls(metric, pairs) for metric in metrics},
    )


def _read(run: Evaluation | ResultFile) -> tuple[list[_Answer], Mapping[str, set[str]]]:
    """The scores of each answer, and who judged each metric."""
    answers: dict[int, _Answer] = {}
    judges: defaultdict[str, set[str]] = defaultdict(set)
    for result in run.results():
        answer = answers.setdefault(result.row, _Answer(result.row, result.record_id, {}))
        if result.score is not None:
            answer.scores[result.metric] = (result.score, result.label)
        if (judge := named_judge(result)) is not None:
            judges[result.metric].add(judge)
    return list(answers.values()), judges


def _is_a_row(answer: _Answer) -> bool:
    """Whether the id only names the row: any table has such a one."""
    return answer.record_id in {f"row-{answer.row}", str(answer.row)}


def _by_key(answers: Sequence[_Answer], *, by_id: bool) -> dict[tuple[str, int] | int, _Answer]:
    """By row number; or by record id, and how many answers with this id came before."""
    if not by_id:
        return {answer.row: answer for answer in answers}
    seen: Counter[str] = Counter()
    keyed: dict[tuple[str, int] | int, _Answer] = {}
    for answer in answers:
        keyed[answer.record_id, seen[answer.record_id]] = answer
        seen[answer.record_id] += 1
    return keyed


def _metric_comparison(
    metric: str, pairs: Sequence[tuple[_Answer, _Answer]], answers: Sequence[_Answer], before: Sequence[_Answer]
) -> MetricComparison:
    both = [(one.scores[metric], other.scores[metric]) for one, other in pairs if _have(metric, one, other)]
    changes = [(label_before, label) for (_, label), (_, label_before) in both]
    return MetricComparison(
        metric=metric,
        pairs=len(both),
        mean=statistics.fmean(value for (value, _), _ in both) if both else None,
        baseline_mean=statistics.fmean(value for _, (value, _) in both) if both else None,
        interval=interval_of_mean([value - earlier for (value, _), (earlier, _) in both]),
        newly_passing=changes.count(("fail", "pass")),
        newly_failing=changes.count(("pass", "fail")),
        only_here=sum(metric in answer.scores for answer in answers) - len(both),
        only_in_baseline=sum(metric in answer.scores for answer in before) - len(both),
    )


def _have(metric: str, *answers: _Answer) -> bool:
    return all(metric in answer.scores for answer in answers)


def _falls(metric: str, pairs: Sequence[tuple[_Answer, _Answer]]) -> list[Regression]:
    falls = (
        Regression(
            metric=metric,
            row=one.row,
            record_id=one.record_id,
            before=other.scores[metric][0],
            after=one.scores[metric][0],
            label_before=other.scores[metric][1],
            label_after=one.scores[metric][1],
        )
        for one, other in pairs
        if _have(metric, one, other) and one.scores[metric][0] < other.scores[metric][0]
    )
    return heapq.nlargest(FALLS_SHOWN, falls, key=operator.attrgetter("is_newly_failing", "fall"))


def interval_of_mean(differences: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % percentile interval of the mean over `RESAMPLES` resamples; None for fewer than two differences.

    The same differences, in whatever order, always give the same interval: the seed is fixed. Up to 500 differences are
    drawn one by one; of more, neighbours in size are drawn together, in 500 groups, and count as their mean. So the
    time does not grow with their number.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), section 13.3.
    """
    import numpy as np

    count = len(differences)
    if count <= 1:
        return None
    groups = np.array_split(np.sort(np.asarray(differences, dtype=float)), min(_GROUPS, count))
    sizes = np.array([len(group) for group in groups])
    centres = np.array([group.mean() for group in groups])
    draws = np.random.default_rng(_SEED).multinomial(count, sizes / count, size=RESAMPLES)
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(draws @ centres / count, [tail, 1 - tail])
    return float(low), float(high)
