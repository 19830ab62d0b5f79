"""What the embedded judge says of answers as assistants write them, in one file of rows.

    python benchmarks/realistic.py FILE [--developed GROUP ...] [--failures]

Each row of FILE has `id` (the group, a hyphen, a number), `question`, `contexts`, `response` and `supported`. A table shows how many
answers context adherence decides, and the balanced accuracy of these: of all groups, and of those that nobody developed on.
`--failures` prints the explanation of each answer that fails, for a count by hand of those that name the error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ragspan import RagRecord
from ragspan.judges import OverlapJudge
from ragspan.metrics import ContextAdherence
from ragspan.outcomes import Score


async def scored(rows: list[dict[str, Any]]) -> list[tuple[dict[str, Any], Score | None]]:
    metric = ContextAdherence(OverlapJudge(), polls=1, causes=False)
    found = []
    for row in rows:
        record = RagRecord(question=row["question"], contexts=row["contexts"], response=row["response"])
        outcome = await metric.score(record)
        found.append((row, outcome if isinstance(outcome, Score) else None))
    return found


def balanced_accuracy(decided: list[tuple[bool, bool]]) -> float:
    """Of pairs of what people say and what the judge says."""
    shares = []
    for side in (True, False):
        said = [passes == side for supported, passes in decided if supported == side]
        shares.append(sum(said) / len(said) if said else 0.0)
    return sum(shares) / len(shares)


def main() -> None:
    parser = argparse.ArgumentParser(description="What the embedded judge says of answers as assistants write them.")
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--developed", nargs="*", default=[], metavar="GROUP", help="groups that the judge was developed on"
    )
    parser.add_argument("--failures", action="store_true")
    arguments = parser.parse_args()
    results = asyncio.run(scored([json.loads(line) for line in arguments.file.read_text("utf-8").splitlines()]))
    console = Console(width=None if sys.stdout.isatty() else 120)
    table = Table("groups", "answers", "decided", "balanced accuracy")
    for name, developed in (("all", []), ("not developed on", arguments.developed)):
        part = [(row, score) for row, score in results if row["id"].rpartition("-")[0] not in developed]
        decided = [(bool(row["supported"]), score.label == "pass") for row, score in part if score is not None]
        table.add_row(name, str(len(part)), str(len(decided)), f"{balanced_accuracy(decided):.3f}")
    console.print(table)
    for row, score in results if arguments.failures else ():
        if score is not None and score.label == "fail":
            side = "right" if row["supported"] else "wrong"
            console.print(f"{row['id']} ({side}, {row.get('reason', '')}): {score.explanation}", markup=False)


if __name__ == "__main__":
    main()
