"""Two runs side by side: what became better or worse, over the answers that both have scores of.

Answers are paired by record id where the runs have ids in common, else by row number. What only one run has is counted
and left out of the differences. The baseline's scores are held in memory; the other run streams past them.
"""

from __future__ import annotations

import heapq
import itertools
import operator
import statistics
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ragspan.datasets.result_file import ResultFile
from ragspan.datasets.results import Evaluation, ResultRow, named_judge
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


_Key: TypeAlias = "tuple[str, int] | int"
"""A record id, and how many answers with this id came before; or the number of a row."""
_Scores: TypeAlias = dict[str, tuple[float, Label | None]]
"""By metric."""
_Judges: TypeAlias = dict[str, set[str]]


def compare(run: Evaluation | ResultFile, baseline: Evaluation | ResultFile) -> Comparison:
    """What changed from the baseline to this run."""
    by_id = _have_common_ids(run, baseline)
    judges: _Judges = defaultdict(set)
    judges_before: _Judges = defaultdict(set)
    before: dict[_Key, _Scores] = {
        key: {result.metric: (result.score, result.label) for result in results if result.score is not None}
        for key, results in _answers(baseline, judges_before, by_id=by_id)
    }
    scored_before = Counter(metric for scores in before.values() for metric in scores)
    pairs: dict[str, _Pairs] = defaultdict(_Pairs)
    rows = in_both = 0
    for key, results in _answers(run, judges, by_id=by_id):
        rows += 1
        in_both += key in before
        for result in results:
            pairs[result.metric].add(result, before.get(key, {}).get(result.metric))
    metrics = dict.fromkeys([*pairs, *scored_before])  # those of this run first
    return Comparison(
        metrics=tuple(pairs[metric].comparison(metric, scored_before[metric]) for metric in metrics),
        paired_by="record id" if by_id else "row number",
        in_both=in_both,
        only_here=rows - in_both,
        only_in_baseline=len(before) - in_both,
        cautions=tuple(
            f"{metric} was judged by {', '.join(sorted(names))} here and by {', '.join(sorted(judges_before[metric]))} in the"
            " baseline: scores of different judges or versions of prompts should not be compared."
            for metric, names in judges.items()
            if judges_before.get(metric, names) != names
        ),
        falls={metric: pairs[metric].falls for metric in metrics},
    )


class _Pairs:
    """The scores of one metric that have a counterpart in the baseline."""

    def __init__(self) -> None:
        self.falls: list[Regression] = []
        self._here, self._before = array("d"), array("d")
        self._changes: Counter[tuple[Label | None, Label | None]] = Counter()
        self._only_here = 0

    def add(self, result: ResultRow, earlier: tuple[float, Label | None] | None) -> None:
        if result.score is None:
            return
        if earlier is None:
            self._only_here += 1
            return
        before, label_before = earlier
        self._here.append(result.score)
        self._before.append(before)
        self._changes[label_before, result.label] += 1
        if result.score < before:
            fall = Regression(
                metric=result.metric,
                row=result.row,
                record_id=result.record_id,
                before=before,
                after=result.score,
                label_before=label_before,
                label_after=result.label,
            )
            by_weight = operator.attrgetter("is_newly_failing", "fall")
            self.falls = heapq.nlargest(FALLS_SHOWN, [*self.falls, fall], key=by_weight)

    def comparison(self, metric: str, scored_before: int) -> MetricComparison:
        return MetricComparison(
            metric=metric,
            pairs=len(self._here),
            mean=statistics.fmean(self._here) if self._here else None,
            baseline_mean=statistics.fmean(self._before) if self._before else None,
            interval=interval_of_mean(list(map(operator.sub, self._here, self._before))),
            newly_passing=self._changes["fail", "pass"],
            newly_failing=self._changes["pass", "fail"],
            only_here=self._only_here,
            only_in_baseline=scored_before - len(self._here),
        )


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


def _answers(
    run: Evaluation | ResultFile, judges: _Judges, *, by_id: bool
) -> Iterator[tuple[_Key, Sequence[ResultRow]]]:
    """The results of each answer; notes on the way who judged each metric."""
    seen: Counter[str] = Counter()
    for row, lines in itertools.groupby(run.results(), key=operator.attrgetter("row")):
        results = list(lines)
        for result in results:
            if (judge := named_judge(result)) is not None:
                judges[result.metric].add(judge)
        record_id = results[0].record_id
        yield ((record_id, seen[record_id]) if by_id else row), results
        seen[record_id] += by_id


def _have_common_ids(run: Evaluation | ResultFile, baseline: Evaluation | ResultFile) -> bool:
    """Whether any answer of this run is in the baseline by its id; an id that only names its row is in any table."""
    known = {result.record_id for result in baseline.results()}
    return any(
        result.record_id in known and result.record_id not in (f"row-{result.row}", str(result.row))
        for result in run.results()
    )
