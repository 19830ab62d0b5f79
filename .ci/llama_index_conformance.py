#!/usr/bin/env python
"""Runs the shared LlamaIndex suite on the installed release of llama-index-core.

    python .ci/llama_index_conformance.py FOLDER

Some releases cannot pass all of it. What must fail there is named here. Whatever else fails, and whatever of these passes
or is no longer in the suite, makes the exit status 1.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

IN_ONE_PIECE = ("0.14.22", "0.14.23", "0.14.24")
"""These releases read a streamed answer to its end before they return it, and hand it over as one token."""
ANYHOW = ""
NEEDS_A_STREAM = {
    "stream_abandoned_after_one_token": ANYHOW,
    "stream_breaks_midway": ANYHOW,
    "errors_reach_the_user_unchanged": ANYHOW,
    "context_variables_survive": ANYHOW,
    "openinference_attached_before": "'abandoned': response",  # one of several requests, closed after one token
    "openinference_attached_after": "'abandoned': response",
}
"""What cannot pass there, and how each of its problems begins."""


def main(folder: Path) -> int:
    release = version("llama-index-core")
    impossible = NEEDS_A_STREAM if release in IN_ONE_PIECE else {}
    lines = run_suite(folder / "run.py")
    problems = problems_in(lines)
    for name in impossible:
        print(f"{name}: {'failed, as it must' if name in problems else 'DID NOT FAIL'} on {release}")
    complete = any(re.match(r"cases \d+/\d+, hazards \d+/\d+", line) for line in lines)
    return 0 if complete and are_just(impossible, problems) else 1


def run_suite(script: Path) -> list[str]:
    """Run it and show what it prints; returns that by lines."""
    lines = []
    with subprocess.Popen([sys.executable, "-B", str(script)], stdout=subprocess.PIPE, text=True) as suite:
        for line in suite.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    return lines


def problems_in(lines: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """The problems of everything that failed; they stand indented below its name."""
    problems: dict[str, list[str]] = {}
    found: list[str] | None = None
    for line in lines:
        if line.startswith("FAIL "):
            found = problems.setdefault(line.split(maxsplit=1)[1].strip(), [])
        elif found is not None and line.startswith(" "):
            found.append(line.strip())
        else:
            found = None
    return problems


def are_just(impossible: Mapping[str, str], problems: Mapping[str, Sequence[str]]) -> bool:
    """Whether everything failed that must, in the way it must, and nothing else."""
    return problems.keys() == impossible.keys() and all(
        problem.startswith(impossible[name]) for name, found in problems.items() for problem in found
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
