"""What each rule of the embedded judge is worth on answers that nobody developed it on.

    python benchmarks/rules.py DIRECTORY [--realistic FILE ...] [--rows 60] [--rule NAME ...] [--least 0.02] [--json FILE]

Each rule is switched off in turn, and the table shows which figures move, and by how much: a rule that moves none by `--least` goes.
DIRECTORY holds the sets of human judgements that `agreement.py` reads; only sources that are held out are taken, `--rows` of each
set. Beside them stand the pairs of `contrast_unseen.jsonl` and those of the kind `sealed` in `contrast_paraphrased.jsonl`, and
with `--realistic` files as `realistic.py` reads them. Of all of these nobody may read a row.

- "ranks" is the mean AUROC of adherence over people's sets;
- "right" is the share of the fails that are right, "caught" that of the wrong answers that fail, "alarms" that of the right ones;
  "people" are people's sets, "pairs" the unseen pairs, "realistic" the files.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from agreeing.judgements import read_sets
from contrast import read_pairs
from rich.console import Console
from rich.table import Table

from ragspan import RagRecord
from ragspan.judges import OverlapJudge
from ragspan.judges.screen import grading
from ragspan.judges.screen.facts import english
from ragspan.judges.screen.findings import FINDERS
from ragspan.metrics import ContextAdherence
from ragspan.outcomes import NotApplicable, Score

HERE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """An answer that people call right or wrong."""

    group: str
    record: RagRecord
    right: bool


def rows_of(directory: Path, files: Sequence[Path], most: int) -> list[Row]:
    found = []
    for judged in read_sets(directory):
        held_out = [one for one in judged.judgements if one.held_out and not one.is_empty]
        random.Random(judged.name).shuffle(held_out)
        found += [
            Row(group=f"people: {judged.name}", record=one.record, right=one.supported) for one in held_out[:most]
        ]
    pairs = [
        pair for name in ("contrast_unseen", "contrast_paraphrased") for pair in read_pairs(HERE / f"{name}.jsonl")
    ]
    for pair in pairs:
        for response, right in ((pair.right, True), (pair.wrong, False)) if pair.kind != "open" else ():
            record = RagRecord(question=pair.question, contexts=pair.contexts, response=response)
            found.append(Row(group="pairs", record=record, right=right))
    for file in files:
        for row in map(json.loads, file.read_text("utf-8").splitlines()):
            record = RagRecord(question=row["question"], contexts=row["contexts"], response=row["response"])
            found.append(Row(group="realistic", record=record, right=bool(row["supported"])))
    return found


def figures_of(rows: Sequence[Row]) -> dict[str, float]:
    scored = asyncio.run(_scored(rows))
    figures = {}
    people = sorted({row.group for row in rows if row.group.startswith("people")})
    ranks = [
        _auroc([(value, row.right) for row, (value, _) in zip(rows, scored, strict=True) if row.group == group])
        for group in people
    ]
    figures["ranks"] = sum(ranks) / len(ranks)
    for group in ("people", "pairs", "realistic"):
        told = [(row.right, fails) for row, (_, fails) in zip(rows, scored, strict=True) if row.group.startswith(group)]
        failing = [right for right, fails in told if fails]
        if told:
            wrong = sum(not right for right, _ in told)
            figures[f"{group} right"] = failing.count(False) / max(1, len(failing))
            figures[f"{group} caught"] = failing.count(False) / max(1, wrong)
            figures[f"{group} alarms"] = failing.count(True) / max(1, len(told) - wrong)
    return figures


async def _scored(rows: Sequence[Row]) -> list[tuple[float, bool]]:
    metric = ContextAdherence(OverlapJudge(), polls=1)
    found = []
    for row in rows:
        outcome = await metric.score(row.record)
        if isinstance(outcome, Score):
            found.append((outcome.value, outcome.label == "fail"))
        else:
            is_refusal = isinstance(outcome, NotApplicable) and outcome.reason == "refusal"
            found.append((1.0 if is_refusal else 0.5, False))
    return found


def _auroc(told: Sequence[tuple[float, bool]]) -> float:
    right, wrong = ([value for value, is_right in told if is_right is side] for side in (True, False))
    wins = sum((one > other) + (one == other) / 2 for one in right for other in wrong)
    return wins / max(1, len(right) * len(wrong))


def _without(target: object, name: str, instead: Any) -> Callable[[], contextlib.AbstractContextManager[Any]]:
    return lambda: patch.object(target, name, instead)


def rules() -> Iterator[tuple[str, Callable[[], contextlib.AbstractContextManager[Any]]]]:
    """The name of each rule with what switches it off."""
    for name in FINDERS:
        yield name, partial(patch.dict, FINDERS, {name: lambda _: None})
    yield "derived numbers", _without(grading, "may_be_derived", lambda *_: False)
    yield "opposites", _without(english(), "opposites", {})


def main() -> None:
    parser = argparse.ArgumentParser(description="What each rule of the embedded judge is worth on unseen answers.")
    parser.add_argument("directory", type=Path, help="sets of human judgements, as NAME.jsonl.gz")
    parser.add_argument("--realistic", type=Path, nargs="*", default=[], metavar="FILE")
    parser.add_argument("--rows", type=int, default=60, help="of each set of judgements")
    parser.add_argument("--rule", nargs="*", help="only these")
    parser.add_argument("--least", type=float, default=0.02, help="what a rule should move")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    arguments = parser.parse_args()
    rows = rows_of(arguments.directory, arguments.realistic, arguments.rows)
    whole = figures_of(rows)
    table = Table("switched off", *whole, "", title=f"{len(rows)} answers")
    table.add_row("nothing", *(f"{figure:.3f}" for figure in whole.values()), "")
    report = {"nothing": whole}
    for name, switched_off in rules():
        if arguments.rule and name not in arguments.rule:
            continue
        with switched_off():
            figures = report[name] = figures_of(rows)
        moves = {figure: figures[figure] - value for figure, value in whole.items()}
        stays = any(abs(move) >= arguments.least for move in moves.values())
        table.add_row(name, *(f"{move:+.3f}" if move else "" for move in moves.values()), "" if stays else "goes")
    Console(width=None if sys.stdout.isatty() else 150).print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
