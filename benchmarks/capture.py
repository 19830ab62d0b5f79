"""How many requests are captured right: ragspan and its peers on the programs of the integrations' own tests.

    python benchmarks/capture.py [--quick] [--framework NAME] [--peer NAME ...] [--case WORDS] [--json FILE]
    python benchmarks/capture.py --conformance FOLDER [--framework NAME] [--peer NAME ...]

Each peer runs every program in a process of its own, which reaches nothing but this machine, and its traces are read
as its own evaluation reads them: `capturing/readers/` says how, one file a peer. `capturing/grading.py` says how
generously they are graded, and what `strictly` asks. The cases are ragspan's tests, so that ragspan's own row says
that they pass and no more; they stand for the kinds of programs that there are, not for how common each kind is, which
the second table shows. A library that keeps no status is asked none: an unfinished answer is only wrong where it would
be scored like a finished one.

`--conformance` runs the shared suites in place of those tests, with the peers that make records: ragspan's handlers, and
its receiver behind other instrumentors. The suites' own comparison grades them, strictly.

`--quick` takes the plain calls only, with ragspan and its receiver unless `--peer` says otherwise. The whole takes
some minutes a peer. `make peers` builds an environment that has them all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from capturing.readers import PEERS, Peer
from capturing.results import COLUMNS, CaseReport, Tally, are_cases, tally
from rich.console import Console
from rich.table import Table

FRAMEWORKS = ("langchain", "llama-index")
QUICK_THEMES = {"langchain": "calling", "llama-index": "queries"}
QUICK_PEERS = ("ragspan", "receiver-openinference")
REFERENCE = "ragspan"
PATIENCE = 1200
"""Seconds that a process may take for its cases."""
_NOT_INHERITED = ("OTEL_", "RAGSPAN_", "LANGFUSE_", "OPIK_", "MLFLOW_", "CONFIDENT_", "LANGSMITH_", "OPENAI_")


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """All cases of a framework with one peer."""

    framework: str
    peer: Peer
    version: str
    theme: str | None = None
    case: str | None = None
    conformance: Path | None = None


class RunError(Exception):
    """A process did not come to its end; the message is what it said last."""


def report(run: Run) -> Any:
    """Run the cases in a process of their own, in a folder of its own and without the settings of others.

    Returns:
        A list of `CaseReport`s, or by the name of a case of conformance what was wrong with it; a `RunError`.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
    environment["PYTHONPATH"] = str(Path(__file__).parent)
    with tempfile.TemporaryDirectory(prefix="capture-") as folder:
        file = Path(folder, "report.json")
        command = [sys.executable, "-m", "capturing", run.framework, run.peer.name, str(file)]
        command += ["--theme", run.theme] if run.theme else []
        command += ["--case", run.case] if run.case else []
        command += ["--conformance", str(run.conformance)] if run.conformance else []
        try:
            finished = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
            )
        except subprocess.TimeoutExpired:
            return RunError(f"did not end within {PATIENCE} seconds")
        if not file.exists():
            return RunError((finished.stdout + finished.stderr).strip()[-2000:])
        return json.loads(file.read_text())


def tallies(runs: Sequence[Run], *, at_a_time: int) -> Iterator[tuple[Run, Tally | RunError]]:
    """What each run got right; ragspan's of the same framework, which says what the cases are, is among them.

    Raises:
        RunError: ragspan's own run failed.
    """
    with ThreadPoolExecutor(at_a_time) as pool:
        reports = list(pool.map(report, runs))
    cases: dict[str, list[CaseReport]] = {}
    for run, reported in zip(runs, reports, strict=True):
        if run.peer.name == REFERENCE:
            if isinstance(reported, RunError):
                raise reported
            cases[run.framework] = are_cases(reported)
    for run, reported in zip(runs, reports, strict=True):
        if isinstance(reported, RunError):
            yield run, reported
        else:
            yield run, tally(run.framework, run.peer.name, run.version, cases[run.framework], reported)


def show(framework: str, rows: Sequence[Tally], left_out: Mapping[str, str]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160)
    table = Table(title=f"{framework}: requests captured right, and what was wrong with the others")
    for heading in ("", "version", "cases right", "requests right", "strictly", "unknown contexts", *COLUMNS):
        table.add_column(heading, justify="left" if heading in {"", "version"} else "right")
    for row in rows:
        table.add_row(
            row.peer,
            row.version,
            f"{row.cases_right} of {row.cases}",
            f"{row.requests_right} of {row.requests}",
            str(row.requests_strictly_right),
            str(row.requests_of_unknown_contexts),
            *(str(row.faults.get(fault, 0)) for fault in COLUMNS),
        )
    for name, reason in left_out.items():
        table.add_row(name, reason)
    console.print(table)
    themes = Table(title=f"{framework}: cases right, by the module of tests that they stand in")
    for heading in ("module", "cases", *(row.peer for row in rows)):
        themes.add_column(heading, justify="left" if heading == "module" else "right")
    for theme, (_, cases) in rows[0].themes.items():
        themes.add_row(theme, str(cases), *(str(row.themes[theme][0]) for row in rows))
    console.print(themes)
    for row in rows:
        peer = PEERS[row.peer]
        console.print(
            f"[bold]{peer.name}[/] is read by {peer.reading}." + (f" Note: {peer.limits}." if peer.limits else "")
        )


def show_conformance(runs: Sequence[Run], at_a_time: int) -> None:
    """Run the shared suites, and show each peer's share and what it did not get right."""
    console = Console(width=None if sys.stdout.isatty() else 160)
    with ThreadPoolExecutor(at_a_time) as pool:
        for run, cases in zip(runs, pool.map(report, runs), strict=True):
            about = f"{run.framework}, {run.peer.name} {run.version}"
            if isinstance(cases, RunError):
                console.print(f"{about}: {cases}", markup=False)
                continue
            wrong = {name: problems for name, problems in cases.items() if problems}
            right = len(cases) - len(wrong)
            console.print(
                f"{about}: {right} of {len(cases)} cases right, {100 * right / len(cases):.1f} %", markup=False
            )
            for name, problems in wrong.items():
                console.print(f"  {name}: {problems[0][:200]}", markup=False, highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(description="How many requests are captured right.")
    parser.add_argument("--quick", action="store_true", help="the plain calls only: whether it runs")
    parser.add_argument("--framework", choices=FRAMEWORKS, help="this one only")
    parser.add_argument("--peer", action="append", choices=PEERS, help="ragspan and this one; can be said again")
    parser.add_argument("--case", metavar="WORDS", help="cases with this in their name")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every case there as well")
    parser.add_argument("--at-a-time", type=int, default=2, help="processes at the same time")
    parser.add_argument("--conformance", type=Path, metavar="FOLDER", help="the shared suites in place of the tests")
    arguments = parser.parse_args()
    if arguments.conformance:
        recording = [name for name in PEERS if name == REFERENCE or name.startswith("receiver")]
        arguments.peer = arguments.peer or recording
    names = {REFERENCE, *(arguments.peer or (QUICK_PEERS if arguments.quick else PEERS))}
    frameworks = [arguments.framework] if arguments.framework else FRAMEWORKS
    wanted = [(framework, peer) for framework in frameworks for peer in PEERS.values() if peer.name in names]
    runs = [
        Run(
            framework=framework,
            peer=peer,
            version=version,
            theme=QUICK_THEMES[framework] if arguments.quick else None,
            case=arguments.case,
        )
        for framework, peer in wanted
        if (version := peer.version(framework))
    ]
    if arguments.conformance:
        shared = arguments.conformance.resolve()
        show_conformance([replace(run, conformance=shared) for run in runs], arguments.at_a_time)
        return
    results = list(tallies(runs, at_a_time=len(runs) if arguments.quick else arguments.at_a_time))
    rows = [row for _, row in results if isinstance(row, Tally)]
    for framework in frameworks:
        left_out = {peer.name: "not installed" for of, peer in wanted if of == framework and peer.is_missing(of)}
        for run, error in results:
            if isinstance(error, RunError) and run.framework == framework:
                left_out[run.peer.name] = "failed"
                print(f"{framework} with {run.peer.name}: {error}", file=sys.stderr)
        show(framework, [row for row in rows if row.framework == framework], left_out)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


if __name__ == "__main__":
    main()
