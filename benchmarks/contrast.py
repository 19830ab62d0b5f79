"""How a judge tells a right response from a wrong one that differs in one thing.

    python benchmarks/contrast.py [FILE ...] [--supported DIRECTORY] [--failures] [--json FILE]

A FILE holds pairs, one JSON object a line: `kind`, `language`, `question`, `passage` (or `contexts`, a list), and the two
responses `right` and `wrong`. Without one the pairs in `benchmarks/contrast_pairs.jsonl` are taken. Those in
`benchmarks/contrast_unseen.jsonl`, and those of the kind `sealed` in `contrast_paraphrased.jsonl`, are for an estimate of unseen
texts: measure on them, read no row, develop nothing on them.

A table by language and kind shows for context adherence and for faithfulness:

- ranked: how many right responses score above the wrong one;
- caught: how many wrong responses fail;
- passes: how many right responses pass.

A refusal that the judge finds right has no score and counts as passing. Where the judge cannot tell, each half counts.

`--supported` takes the sets of human judgements that `agreement.py` reads. For responses that people call supported, a table shows
in how many of them the judge finds a contradiction, by kind: these are false, but for what people missed. `--failures` lists
the pairs that go wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from agreeing.judgements import JudgementSet, read_sets
from rich.console import Console
from rich.table import Table

from ragspan import RagRecord
from ragspan.judges import OverlapJudge
from ragspan.judges.screen.analysis import Analysis
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.outcomes import NotApplicable, Score

PAIRS = Path(__file__).with_name("contrast_pairs.jsonl")
METRICS = ("adherence", "faithfulness")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """One question with a right and a wrong response."""

    id: str
    kind: str
    language: str
    question: str
    contexts: tuple[str, ...]
    right: str
    wrong: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What one metric makes of a pair."""

    ranked: bool
    caught: float
    passes: float


def main() -> None:
    arguments = parsed()
    pairs = [pair for path in arguments.files or [PAIRS] for pair in read_pairs(path)]
    results = asyncio.run(results_of(pairs))
    console = Console(width=None if sys.stdout.isatty() else 150)
    for language in dict.fromkeys(pair.language for pair in pairs):
        console.print(table_of(language, [(pair, found) for pair, found in results if pair.language == language]))
    if arguments.failures:
        for pair, found in results:
            wrong = [
                f"{metric}: not {what}"
                for metric in METRICS
                for what, good in asdict(found[metric]).items()
                if good < 1
            ]
            if wrong:
                console.print(f"{pair.id} {pair.kind}: {', '.join(wrong)}", markup=False)
    report: dict[str, object] = {
        "pairs": [
            {"id": pair.id, "kind": pair.kind, "language": pair.language}
            | {metric: asdict(found[metric]) for metric in METRICS}
            for pair, found in results
        ]
    }
    if arguments.supported:
        false = {judged.name: false_contradictions(judged) for judged in read_sets(arguments.supported)}
        console.print(table_of_false(false))
        report["false_contradictions"] = {name: [supported, dict(kinds)] for name, (supported, kinds) in false.items()}
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


def read_pairs(path: Path) -> list[Pair]:
    """The pairs of a file; whatever else a row holds is passed over."""
    return [_pair(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _pair(row: dict[str, object]) -> Pair:
    contexts = row.get("contexts") or [row["passage"]]
    if not isinstance(contexts, list):
        raise TypeError("contexts should be a list")
    texts = {name: str(row[name]) for name in ("id", "kind", "language", "question", "right", "wrong")}
    return Pair(contexts=tuple(map(str, contexts)), **texts)


async def results_of(pairs: Iterable[Pair]) -> list[tuple[Pair, dict[str, Result]]]:
    """Each pair with what the embedded judge's adherence and faithfulness make of it."""
    judge = OverlapJudge()
    metrics: dict[str, ContextAdherence | Faithfulness] = {
        "adherence": ContextAdherence(judge),
        "faithfulness": Faithfulness(judge),
    }
    return [(pair, {name: await _result(metric, pair) for name, metric in metrics.items()}) for pair in pairs]


async def _result(metric: ContextAdherence | Faithfulness, pair: Pair) -> Result:
    async def value_of(response: str) -> tuple[float, float]:
        outcome = await metric.score(RagRecord(question=pair.question, contexts=pair.contexts, response=response))
        if isinstance(outcome, Score):
            return outcome.value, float(outcome.label == "pass")
        reason = outcome.reason if isinstance(outcome, NotApplicable) else ""
        value = {"refusal": 1.0, "cannot_tell": 0.5}.get(reason, 0.0)
        return value, value

    (right, passes), (wrong, slips) = await value_of(pair.right), await value_of(pair.wrong)
    return Result(ranked=right > wrong, caught=1 - slips, passes=passes)


def table_of(language: str, results: Sequence[tuple[Pair, dict[str, Result]]]) -> Table:
    """The shares by kind, and of all pairs, in the order in which the kinds come."""
    table = Table(title=f"{language}: {len(results)} pairs")
    table.add_column("kind")
    table.add_column("pairs", justify="right")
    for metric in METRICS:
        for what in ("ranked", "caught", "passes"):
            table.add_column(f"{metric} {what}", justify="right")
    kinds = dict.fromkeys(pair.kind for pair, _ in results)
    rows = {kind: [found for pair, found in results if pair.kind == kind] for kind in kinds}
    for kind, found in rows.items():
        table.add_row(kind, str(len(found)), *_shares(found))
    table.add_section()
    table.add_row("all", str(len(results)), *_shares([found for _, found in results]))
    return table


def _shares(found: Sequence[dict[str, Result]]) -> list[str]:
    counts = (
        sum(asdict(one[metric])[what] for one in found) for metric in METRICS for what in ("ranked", "caught", "passes")
    )
    return [f"{count / len(found):.2f}" for count in counts]


def false_contradictions(judged: JudgementSet) -> tuple[int, Counter[str]]:
    """How many responses people call supported, and in how many of them the judge finds a contradiction of each kind."""
    kinds: Counter[str] = Counter()
    supported = [one for one in judged.judgements if one.supported and not one.is_empty]
    for one in supported:
        found = {finding.kind for grade in Analysis(one.record).grades for finding in grade.findings}
        kinds.update(found)
        kinds["any"] += bool(found)
    return len(supported), kinds


def table_of_false(false: dict[str, tuple[int, Counter[str]]]) -> Table:
    table = Table(title="contradictions found in responses that people call supported")
    kinds = sorted({kind for _, found in false.values() for kind in found} - {"any"})
    for heading in ("set", "supported", "any", *kinds):
        table.add_column(heading, justify="left" if heading == "set" else "right")
    for name, (supported, found) in false.items():
        table.add_row(name, str(supported), *(f"{found[kind] / supported:.1%}" for kind in ("any", *kinds)))
    return table


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How a judge tells a right response from a wrong one.")
    parser.add_argument("files", nargs="*", type=Path, help="pairs, as JSON Lines")
    parser.add_argument("--supported", type=Path, metavar="DIRECTORY", help="sets of human judgements")
    parser.add_argument("--failures", action="store_true", help="list the pairs that go wrong")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    return parser.parse_args()


if __name__ == "__main__":
    main()
