"""Whether the report's signs of risk agree with people.

Scores the answers of each set with the embedded judge, and prints the signs that the report would give: for all answers, for
those that people found supported (a good system), and for those that they did not (a bad one).

    python benchmarks/report_signs.py ../shared/data/human_judgements/*.jsonl.gz
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from ragspan.evaluate import Evaluation, evaluate
from ragspan.evaluate.report import signs_of
from ragspan.evaluate.summaries import MetricSummary, MetricTally
from ragspan.outcomes import NotApplicable, Score

_METRICS = ("context_adherence", "completeness", "context_utilization", "faithfulness")
_PARTS: Mapping[str, Collection[bool]] = {"all": (True, False), "supported": (True,), "unsupported": (False,)}


def read(path: Path) -> list[dict[str, Any]]:
    """The answers of a set."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def summaries_of(evaluation: Evaluation, is_in: Callable[[int], bool]) -> dict[str, MetricSummary]:
    """The scores of those rows, counted from 0, that are in a part."""
    tallies = {metric: MetricTally() for metric in evaluation.metrics}
    for result in evaluation.results():
        if is_in(result.row - 1):
            threshold = evaluation.summary[result.metric].threshold
            if result.score is None:
                tallies[result.metric].add(NotApplicable(reason=result.reason or "unknown"))
            else:
                tallies[result.metric].add(Score(value=result.score, threshold=threshold, label=result.label))
    return {metric: tally.summary(metric) for metric, tally in tallies.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", type=Path, nargs="+", metavar="FILE.jsonl.gz")
    for path in parser.parse_args().sets:
        rows = read(path)
        evaluation = evaluate(rows, _METRICS, judge="overlap")
        for part, wanted in _PARTS.items():
            chosen = [row["supported"] in wanted for row in rows]
            share = sum(row["supported"] for row in rows if row["supported"] in wanted) / sum(chosen)
            print(f"{path.name.partition('.')[0]}, {part}: {sum(chosen)} answers, {share:.0%} supported by people")
            for metric, summary in summaries_of(evaluation, chosen.__getitem__).items():
                signs = ", ".join(f"{sign.title} ({sign.level})" for sign in signs_of(summary)) or "none"
                passed = summary.passed / max(1, summary.scored)
                print(f"  {metric:20} mean {summary.mean or 0:.2f}  {passed:4.0%} pass  {signs}")


if __name__ == "__main__":
    main()
