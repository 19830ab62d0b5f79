"""Two runs side by side: what became better or worse, over the answers that both have scores of.

Answers are paired by record id where the runs have ids in common, else by row number and question. What only one run has is counted and
left out of the differences. The scores of both runs are held in memory, without texts.
"""

from __future__ import annotations

import heapq
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ragspan.evaluate.evaluation import Evaluation
from ragspan.evaluate.rows import ResultFile, named_judge
from ragspan.evaluate.summaries import deviation_of
from ragspan.outcomes import Label

_MOST_SHOWN = 20
_DEVIATIONS = 1.96  # of a normal distribution, between which 95 % of it lie
_NO_SCORE = (None, None)
_Scores: TypeAlias = dict[str, "tuple[float, Label | None]"]
_Answers: TypeAlias = "dict[tuple[str, int], tuple[int, _Scores, int]]"
"""Row, scores by metric and the question's hash of each answer, by its id (else its number) and how many with this id came before."""


class ScoreChange(NamedTuple):
    """A score in both runs."""

    row: int
    record_id: str
    before: float
    after: float
    label_before: Label | None
    label_after: Label | None


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricComparison:
    """One metric in both runs. `mean` and `baseline_mean` are over the same answers: those that both runs scored."""

    metric: str
    verdict: str = "nothing to compare"
    """`better`, `worse`, or `no clear difference`, where zero is in the interval; `judged differently` where the judges were others."""
    pairs: int = 0
    """Answers that have a score in both runs."""
    mean: float | None = None
    baseline_mean: float | None = None
    interval: tuple[float, float] | None = None
    """95 % interval of the difference, of which positive is better; None for fewer than two pairs."""
    newly_passing: int = 0
    newly_failing: int = 0
    labelled_once: int = 0
    """Answers of both runs that pass or fail in one of them only: in the other they have no score, or the judge cannot tell."""
    falls: Sequence[ScoreChange] = ()
    """At most twenty: those that passed before and fail now come first, then the largest."""
    rises: Sequence[ScoreChange] = ()
    """At most twenty: those that failed before and pass now come first, then the largest."""

    def __str__(self) -> str:
        once = f"; {self.labelled_once:,} have a label in one run only" if self.labelled_once else ""
        if self.mean is None:
            return f"{self.metric}: nothing to compare with the baseline{once}"
        means = f"{self.mean:.3f}, and {self.baseline_mean:.3f} in the baseline: {self.verdict}"
        newly = f"over {self.pairs:,} of both; {self.newly_failing:,} newly fail, {self.newly_passing:,} newly pass"
        return f"{self.metric}: {means} ({newly}{once})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """A run and its baseline."""

    metrics: tuple[MetricComparison, ...]
    pairing: str
    """How answers were paired, and how many were left out, as a sentence."""
    cautions: tuple[str, ...] = ()
    """Reasons why scores may differ though no answer does."""


def compare(run: Evaluation | ResultFile, baseline: Evaluation | ResultFile) -> Comparison:
    """What changed from the baseline to this run."""
    (answers, judges), (before, judges_before) = _read(run), _read(baseline)
    changes: dict[str, list[ScoreChange]] = {metric: [] for metric in (*run.metrics, *baseline.metrics)}
    labelled_once: Counter[str] = Counter()
    by_id = any(not name.startswith("row-") for name, _ in answers.keys() & before.keys())
    if not by_id:
        answers, before = ({(str(one[0]), one[2]): one for one in found.values()} for found in (answers, before))
    both, paired_by = answers.keys() & before.keys(), "record id" if by_id else "row number and question"
    unpaired = f"no answer of both runs has the same {paired_by}; a column id in both tables pairs them"
    left_out = f"{len(answers) - len(both):,} only in this run, {len(before) - len(both):,} only in the baseline"
    pairing = f"{len(both):,} answers are in both runs, paired by {paired_by}; left out: {left_out}"
    for key in filter(both.__contains__, answers):
        (row, scores, _), (_, old, _) = answers[key], before[key]
        for metric in scores.keys() | old.keys():
            (now, label), (was, label_was) = scores.get(metric, _NO_SCORE), old.get(metric, _NO_SCORE)
            labelled_once[metric] += (label is None) is not (label_was is None)
            if now is not None and was is not None:
                changes[metric].append(ScoreChange(row, key[0], was, now, label_was, label))
    differ = {metric: names for metric, names in judges.items() if judges_before.get(metric, names) != names}
    return Comparison(
        metrics=tuple(
            _compared(metric, found, labelled_once[metric], is_other=metric in differ)
            for metric, found in changes.items()
        ),
        pairing=pairing if both else f"nothing to compare: {unpaired}",
        cautions=tuple(
            f"{metric} was judged by {', '.join(sorted(names))} here and by {', '.join(sorted(judges_before[metric]))} in the"
            " baseline: scores of different judges or versions of prompts should not be compared."
            for metric, names in differ.items()
        ),
    )


def _read(run: Evaluation | ResultFile) -> tuple[_Answers, Mapping[str, set[str]]]:
    """The scores of each answer, and who judged each metric. Where a judge has a share, the embedded judge has read all rows."""
    answers: _Answers = {}
    judges: defaultdict[str, set[str]] = defaultdict(set)
    seen: Counter[str] = Counter()
    for row in run.all_rows() if isinstance(run, Evaluation) else run.rows():
        record_id, found = row.record.record_id, _Scores()
        answers[record_id, seen[record_id]] = (row.row, found, hash(row.record.question))
        seen[record_id] += 1
        for metric, score in row.of_one_judge.items():
            found[metric] = (score.value, score.label)
            judges[metric] |= {judge} if (judge := named_judge(score)) is not None else set()
    return answers, judges


def _compared(metric: str, changes: Sequence[ScoreChange], once: int, *, is_other: bool) -> MetricComparison:
    if not changes:
        return MetricComparison(metric=metric, labelled_once=once)
    differences = [change.after - change.before for change in changes]
    mean, interval = statistics.fmean(differences), None
    if len(changes) > 1:
        reach = _DEVIATIONS * deviation_of(differences, mean) / math.sqrt(len(changes))
        interval = (mean - reach, mean + reach)
    low, high = interval or (0.0, 0.0)
    verdict = "better" if low > 0 else "worse" if high < 0 else "no clear difference"
    labels = Counter((change.label_before, change.label_after) for change in changes)
    falls = [change for change in changes if change.after < change.before]
    rises = [change for change in changes if change.after > change.before]
    return MetricComparison(
        metric=metric,
        verdict="judged differently" if is_other else verdict,
        pairs=len(changes),
        mean=statistics.fmean(change.after for change in changes),
        baseline_mean=statistics.fmean(change.before for change in changes),
        interval=interval,
        newly_passing=labels["fail", "pass"],
        newly_failing=labels["pass", "fail"],
        labelled_once=once,
        falls=_largest(falls, first=("pass", "fail")),
        rises=_largest(rises, first=("fail", "pass")),
    )


def _largest(changes: Sequence[ScoreChange], *, first: tuple[Label, Label]) -> Sequence[ScoreChange]:
    """The largest changes, and before them those with these labels."""
    return heapq.nlargest(_MOST_SHOWN, changes, key=lambda one: (one[-2:] == first, abs(one.after - one.before)))
