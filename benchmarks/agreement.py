"""How well the embedded judge agrees with people.

    python benchmarks/agreement.py DIRECTORY

DIRECTORY holds sets of human judgements, a `NAME.jsonl.gz` each, whose rows have `question`, `contexts`, `response`,
`source_id`, the label `supported` and, where people rated it, `completeness`. Printed for each set: rows with contexts;
the area under the ROC curve of adherence and of faithfulness for the label, and of completeness for a mean rating of
3.5 or more; balanced accuracy of adherence at 0.5, on all rows and on the half of the sources that the calibration was
not fitted on; and records a second of CPU time, all four metrics asked. An answer without a score counts 0.

Last comes the calibration of the first half: the slope and the middle that `ragspan.judges.overlap.grounding` rounds.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ragspan import RagRecord
from ragspan.judges import OverlapJudge
from ragspan.judges.overlap.analysis import Analysis
from ragspan.judges.overlap.grounding import answer_score
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.outcomes import Outcome, Score

Row: TypeAlias = dict[str, Any]
Point: TypeAlias = tuple[float, float, float]
"""A score, its label as 0 or 1, and its weight."""

COMPLETE = 3.5
"""The mean rating, of 1 to 4, from which people call an answer complete."""
THRESHOLD = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Scored:
    """One row with the judge's values."""

    row: Row
    adherence: float
    faithfulness: float
    completeness: float

    @property
    def supported(self) -> bool:
        return bool(self.row["supported"])

    @property
    def held_out(self) -> bool:
        """True for sources of the half that the calibration was not fitted on."""
        return bool(hashlib.sha256(self.row["source_id"].encode()).digest()[-1] % 2)


def main(directory: Path) -> None:
    print(
        f"{'set':18} {'n':>4} {'adherence':>9} {'faithful':>9} {'complete':>9} {'balanced':>9} {'held out':>9} {'rec/s':>6}"
    )
    accuracies, points = [], []
    for path in sorted(directory.glob("*.jsonl.gz")):
        rows = [row for row in map(json.loads, gzip.decompress(path.read_bytes()).splitlines()) if row["contexts"]]
        started = time.process_time()
        scored = asyncio.run(score(rows))
        seconds = time.process_time() - started
        accuracies.append(report(path.name.partition(".")[0], scored, len(rows) / seconds))
        points += weighted([item for item in scored if not item.held_out])
    print(f"mean balanced accuracy on held-out sources {sum(accuracies) / len(accuracies):.3f}")
    slope, middle = fit(points)
    print(f"calibration: slope {slope:.2f}, middle {middle:.3f}")


async def score(rows: Sequence[Row]) -> list[Scored]:
    judge = OverlapJudge()
    metrics = (ContextAdherence(judge), Faithfulness(judge), Completeness(judge), ContextUtilization(judge))
    scored = []
    for row in rows:
        record = record_of(row)
        adherence, faithfulness, completeness, _ = [value_of(await metric.score(record)) for metric in metrics]
        scored.append(Scored(row=row, adherence=adherence, faithfulness=faithfulness, completeness=completeness))
    return scored


def record_of(row: Row) -> RagRecord:
    return RagRecord(question=row["question"], contexts=row["contexts"], response=row["response"])


def value_of(outcome: Outcome) -> float:
    return outcome.value if isinstance(outcome, Score) else 0.0


def report(name: str, scored: Sequence[Scored], rate: float) -> float:
    """Print the figures of one set; returns its balanced accuracy on held-out sources."""
    labels = [item.supported for item in scored]
    rated = [item for item in scored if item.row["completeness"]]
    complete = [item.row["completeness"]["mean"] >= COMPLETE for item in rated]
    held_out = balanced_accuracy([item for item in scored if item.held_out])
    figures = [
        auroc([item.adherence for item in scored], labels),
        auroc([item.faithfulness for item in scored], labels),
        auroc([item.completeness for item in rated], complete),
        balanced_accuracy(scored),
        held_out,
    ]
    columns = " ".join("        -" if math.isnan(figure) else f"{figure:9.3f}" for figure in figures)
    print(f"{name:18} {len(scored):4} {columns} {rate:6.0f}")
    return held_out


def auroc(values: Sequence[float], labels: Sequence[bool]) -> float:
    """The probability that a positive has a higher value than a negative, ties counted half; NaN without labels."""
    ranks: dict[float, float] = {}
    for rank, value in enumerate(sorted(values), start=1):
        ranks[value] = ranks.get(value, 0.0) + rank
    counts = {value: values.count(value) for value in ranks}
    positives, negatives = sum(labels), len(labels) - sum(labels)
    if not positives or not negatives:
        return math.nan
    rank_sum = sum(ranks[value] / counts[value] for value, label in zip(values, labels, strict=True) if label)
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def balanced_accuracy(scored: Sequence[Scored]) -> float:
    shares = []
    for label in (True, False):
        right = [(item.adherence >= THRESHOLD) == label for item in scored if item.supported == label]
        shares.append(sum(right) / len(right))
    return sum(shares) / 2


def weighted(scored: Sequence[Scored]) -> list[Point]:
    """The raw scores of the answers that claim something; both labels weigh the same."""
    graded = [(item.supported, Analysis(record_of(item.row)).grades) for item in scored]
    labels = [supported for supported, grades in graded if grades]
    return [
        (answer_score(grades), float(supported), 1 / labels.count(supported)) for supported, grades in graded if grades
    ]


def fit(points: Sequence[Point]) -> tuple[float, float]:
    """Slope and middle of the weighted logistic regression of labels on scores, by Newton's method."""
    slope, offset = 1.0, 0.0
    for _ in range(25):
        a = b = aa = ab = bb = 0.0
        for value, label, weight in points:
            expected = 1 / (1 + math.exp(-slope * value - offset))
            error, curvature = weight * (expected - label), weight * expected * (1 - expected)
            a, b = a + error * value, b + error
            aa, ab, bb = aa + curvature * value * value, ab + curvature * value, bb + curvature
        determinant = aa * bb - ab * ab
        slope, offset = slope - (bb * a - ab * b) / determinant, offset - (aa * b - ab * a) / determinant
    return slope, -offset / slope


if __name__ == "__main__":
    main(Path(sys.argv[1]))
