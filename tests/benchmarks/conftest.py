"""Runs the programs in `benchmarks/`, and imports their modules."""

from __future__ import annotations

import gzip
import importlib
import json
from pathlib import Path

import pytest
from programs import run_python

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="session")
def run_benchmark():
    """Runs a program with these arguments; by default it has to end well."""

    def run(program, *arguments, is_right=True, env=None):
        done = run_python(BENCHMARKS / program, *arguments, timeout=300, environment=env)
        assert not is_right or done.returncode == 0, done.stdout + done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def figures_of(run_benchmark, tmp_path_factory):
    """The figures that a program writes, in a quick run unless its arguments say otherwise."""

    def figures(program, *arguments, quick=True):
        file = tmp_path_factory.mktemp("figures") / "figures.json"
        run_benchmark(program, *arguments, *(["--quick"] if quick else []), "--json", file)
        return json.loads(file.read_text(encoding="utf-8"))

    return figures


@pytest.fixture(scope="session")
def judgements_of(tmp_path_factory):
    """A folder of sets of made-up judgements, each from its rows."""

    def write(**sets):
        folder = tmp_path_factory.mktemp("judgements")
        for name, rows in sets.items():
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
        return folder

    return write


@pytest.fixture(scope="module")
def part():
    """Imports a module of `benchmarks/`, as the programs do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        yield importlib.import_module
