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
from typing import Literal, NamedTuple, Protocol, TypeAlias

from ragspan.datasets.report.bootstrap import interval_of_mean
from ragspan.datasets.results import ResultRow
from ragspan.outcomes import Label

Verdict: TypeAlias = Literal["better", "worse", "no clear difference", "nothing to compare"]
FALLS_SHOWN = 20


class ScoredRun(Protocol):
    """Anything that can tell its results: an `Evaluation`, or the result file of an earlier run."""

    def results(self) -> Iterator[ResultRow]:
        """Each record and metric, those of a record together. It can be asked more than once."""
        ...


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


def compare(run: ScoredRun, baseline: ScoredRun) -> Comparison:
    """What changed from the baseline to this run."""
    before = _Baseline.read(baseline, by_id=_have_common_ids(run, baseline))
    tallies: dict[str, _Tally] = defaultdict(_Tally)
    judges: dict[str, set[str]] = defaultdict(set)
    falls: dict[str, list[Regression]] = {metric: [] for metric in before.scored}
    rows = in_both = 0
    for key, results in _answers(run, by_id=before.by_id):
        known = before.scores.get(key)
        rows += 1
        in_both += known is not None
        for result in results:
            _note_judge(judges, result)
            earlier = (known or {}).get(result.metric)
            tallies[result.metric].add(result, earlier)
            if earlier is not None and result.score is not None and result.score < earlier.score:
                falls[result.metric] = _largest([*falls[result.metric], _fall(result, result.score, earlier)])
    return Comparison(
        metrics=tuple(tally.comparison(metric, before) for metric, tally in _with_lost(tallies, before).items()),
        paired_by="record id" if before.by_id else "row number",
        in_both=in_both,
        only_here=rows - in_both,
        only_in_baseline=len(before.scores) - in_both,
        cautions=tuple(_cautions(judges, before.judges)),
        falls=defaultdict(tuple, falls),
    )


class _Earlier(NamedTuple):
    score: float
    label: Label | None


_Key: TypeAlias = "tuple[str, int] | int"
"""A record id, and how many answers with this id came before; or the number of a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Baseline:
    by_id: bool
    scores: Mapping[_Key, Mapping[str, _Earlier]]
    """Of each answer, those metrics that have a score."""
    scored: Counter[str]
    """Scores by metric."""
    judges: Mapping[str, set[str]]

    @classmethod
    def read(cls, run: ScoredRun, *, by_id: bool) -> _Baseline:
        scores: dict[_Key, dict[str, _Earlier]] = {}
        scored: Counter[str] = Counter()
        judges: dict[str, set[str]] = defaultdict(set)
        for key, results in _answers(run, by_id=by_id):
            scores[key] = {item.metric: _Earlier(item.score, item.label) for item in results if item.score is not None}
            scored.update(scores[key].keys())
            for result in results:
                _note_judge(judges, result)
        return cls(by_id=by_id, scores=scores, scored=scored, judges=judges)


@dataclass(slots=True)
class _Tally:
    """What is counted of one metric while this run streams past."""

    here: array[float] = field(default_factory=lambda: array("d"))
    before: array[float] = field(default_factory=lambda: array("d"))
    changes: Counter[tuple[Label | None, Label | None]] = field(default_factory=Counter)
    only_here: int = 0

    def add(self, result: ResultRow, earlier: _Earlier | None) -> None:
        if result.score is None:
            return
        if earlier is None:
            self.only_here += 1
            return
        self.here.append(result.score)
        self.before.append(earlier.score)
        self.changes[earlier.label, result.label] += 1

    def comparison(self, metric: str, baseline: _Baseline) -> MetricComparison:
        return MetricComparison(
            metric=metric,
            pairs=len(self.here),
            mean=statistics.fmean(self.here) if self.here else None,
            baseline_mean=statistics.fmean(self.before) if self.before else None,
            interval=interval_of_mean(list(map(operator.sub, self.here, self.before))),
            newly_passing=self.changes["fail", "pass"],
            newly_failing=self.changes["pass", "fail"],
            only_here=self.only_here,
            only_in_baseline=baseline.scored[metric] - len(self.here),
        )


def _answers(run: ScoredRun, *, by_id: bool) -> Iterator[tuple[_Key, Sequence[ResultRow]]]:
    seen: Counter[str] = Counter()
    for row, lines in itertools.groupby(run.results(), key=operator.attrgetter("row")):
        results = list(lines)
        record_id = results[0].record_id
        yield ((record_id, seen[record_id]) if by_id else row), results
        seen[record_id] += by_id


def _have_common_ids(run: ScoredRun, baseline: ScoredRun) -> bool:
    """Whether any answer of this run is in the baseline by its id; what only names its row does so in any table."""
    known = {result.record_id for result in baseline.results()}
    return any(
        result.record_id in known and result.record_id not in (f"row-{result.row}", str(result.row))
        for result in run.results()
    )


def _with_lost(tallies: dict[str, _Tally], baseline: _Baseline) -> dict[str, _Tally]:
    """All metrics of this run, and then those that only the baseline has."""
    return tallies | {metric: _Tally() for metric in baseline.scored if metric not in tallies}


def _fall(result: ResultRow, score: float, earlier: _Earlier) -> Regression:
    return Regression(
        metric=result.metric,
        row=result.row,
        record_id=result.record_id,
        before=earlier.score,
        after=score,
        label_before=earlier.label,
        label_after=result.label,
    )


def _largest(falls: list[Regression]) -> list[Regression]:
    return heapq.nlargest(FALLS_SHOWN, falls, key=lambda fall: (fall.is_newly_failing, fall.fall))


def _note_judge(judges: dict[str, set[str]], result: ResultRow) -> None:
    if result.judge is not None:
        version = f" (prompts {result.prompt_version})" if result.prompt_version else ""
        judges[result.metric].add(result.judge + version)


def _cautions(here: Mapping[str, set[str]], before: Mapping[str, set[str]]) -> Iterator[str]:
    for metric, judges in here.items():
        earlier = before.get(metric)
        if earlier and earlier != judges:
            yield (
                f"{metric} was judged by {_listed(judges)} here and by {_listed(earlier)} in the baseline: "
                "scores of different judges or versions of prompts should not be compared."
            )


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names))
