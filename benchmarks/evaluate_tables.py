"""How fast tables are evaluated, and whether a larger one needs more memory.

Writes tables of made-up answers in a temporary folder, evaluates each with the embedded judge in a process of its own, and
prints rows a second and the peak of resident memory, of that process and of its helper. With `--metrics none` a metric that
does nothing takes the judge's place: what is left is the cost of a row, in processor time of that process.

    python benchmarks/evaluate_tables.py                      # 50 MB and 300 MB of CSV: some minutes
    python benchmarks/evaluate_tables.py --megabytes 5 20 --format jsonl --metrics context_utilization
    python benchmarks/evaluate_tables.py --quick --metrics none --json costs.json
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from judging.embedded import records_of_different_texts

from ragspan.outcomes import Score
from ragspan.records import RagRecord

_UNIT = 1024 if sys.platform != "darwin" else 1  # of the peak that the system tells, in bytes


@dataclass(frozen=True)
class Measured:
    """One evaluation."""

    megabytes: int
    rows: int
    rows_per_second: float
    cpu_us_per_row: float
    peak_mb: float
    helper_peak_mb: float


def made_up_rows() -> Iterator[dict[str, object]]:
    """Answers that keep to their ten contexts in half of their sentences, in words as frequent as in English."""
    for record in records_of_different_texts():
        contexts = [context.text for context in record.contexts or ()]
        yield {"question": record.question, "contexts": contexts, "answer": record.response}


def write_table(path: Path, megabytes: int) -> None:
    """Rows until the file is as large as asked for."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if path.suffix == ".csv":
            writer.writerow(["question", "contexts", "answer"])
        for row in made_up_rows():
            if file.tell() >= megabytes * 1_000_000:
                return
            if path.suffix == ".csv":
                writer.writerow([row["question"], json.dumps(row["contexts"]), row["answer"]])
            else:
                file.write(json.dumps(row) + "\n")


class NoOp:
    """A metric that does nothing."""

    name = "noop"

    async def score(self, record: RagRecord) -> Score:
        return Score(value=0.5)


def evaluate_here(path: Path, megabytes: int, metrics: str | None) -> Measured:
    from ragspan.evaluate import evaluate

    before = time.process_time()
    evaluation = evaluate(path, [NoOp()] if metrics == "none" else metrics, output=path.with_name("results.jsonl"))
    return Measured(
        megabytes=megabytes,
        rows=evaluation.rows,
        rows_per_second=round(evaluation.rows / evaluation.seconds, 1),
        cpu_us_per_row=round((time.process_time() - before) / evaluation.rows * 1e6, 1),
        peak_mb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT / 1e6, 1),
        helper_peak_mb=round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * _UNIT / 1e6, 1),
    )


def measure(folder: Path, megabytes: int, file_format: str, metrics: str | None) -> Measured:
    """Write a table and evaluate it in a new process, so that no peak is another one's."""
    path = folder / f"table-{megabytes}.{file_format}"
    write_table(path, megabytes)
    command = [sys.executable, __file__, "--evaluate", str(path), "--megabytes", str(megabytes)]
    command += ["--metrics", metrics] if metrics else []
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    path.unlink()
    return Measured(**json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[50, 300])
    parser.add_argument("--quick", action="store_true", help="5 MB: whether it runs")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--format", choices=["csv", "jsonl"], default="csv")
    parser.add_argument("--metrics", help="names, separated by commas, or none; by default all four")
    parser.add_argument("--evaluate", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.evaluate is not None:
        print(json.dumps(asdict(evaluate_here(options.evaluate, options.megabytes[0], options.metrics))))
        return
    print(f"{'MB':>5} {'rows':>8} {'rows/s':>8} {'CPU us':>8} {'peak MB':>8} {'helper MB':>10}")
    done = []
    with tempfile.TemporaryDirectory(prefix="ragspan-") as folder:
        for megabytes in [5] if options.quick else options.megabytes:
            measured = measure(Path(folder), megabytes, options.format, options.metrics)
            print(
                f"{megabytes:>5} {measured.rows:>8,} {measured.rows_per_second:>8,.0f}"
                f" {measured.cpu_us_per_row:>8,.0f} {measured.peak_mb:>8,.1f}"
                f" {measured.helper_peak_mb:>10,.1f}"
            )
            done.append(asdict(measured))
    if options.json is not None:
        options.json.write_text(json.dumps(done, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
