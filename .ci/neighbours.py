"""Runs the test suites of LangChain's packages with our instrumentor attached: nothing may fail because of us.

    python .ci/neighbours.py langchain-core langgraph

The suites are those of the installed releases, from their source distributions. What fails with the instrumentor is run again,
without it and with it; what then passes without and fails with it makes the exit status 1. So does an error in a callback of
ours, and a suite in which nothing is captured.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree as ET

SUITES: Mapping[str, str] = {"langchain-core": "tests/unit_tests", "langgraph": "tests"}
"""Where each package keeps the tests that need no network."""

AWARE: Mapping[str, str] = {
    "tests/unit_tests/runnables/test_config.py::test_merge_config_callbacks": "(it counts handlers)",
}
"""Tests that a further handler makes fail whoever made it, as they count handlers; and why."""

ENVIRONMENT = {
    "NO_DOCKER": "true",  # LangGraph's word for: without databases
    "LANGSMITH_TRACING": "false",
    "PYTHONPATH": str(Path(__file__).parent),
}
WITHOUT_NETWORK = ("--disable-socket", "--allow-unix-socket")
AT_LEAST = 100  # tests that pass, and captures
WORKERS = min(8, (os.cpu_count() or 1) * 2)


def main(packages: Sequence[str]) -> int:
    sources = Path(sys.prefix) / "sources"
    return max(check(package, suite_of(package, sources)) for package in packages)


def suite_of(package: str, sources: Path) -> Path:
    """The folder with the tests of the installed release; without the package itself, so that the installed one is tested."""
    folder = sources / f"{package.replace('-', '_')}-{version(package)}"
    if not folder.exists():
        exact = f"{package}=={version(package)}"
        pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
        options = ("--no-deps", "--no-build-isolation", "--no-binary", package, "--dest", str(sources))
        subprocess.run([*pip, "download", *options, exact], check=True)
        with tarfile.open(f"{folder}.tar.gz") as archive:
            wanted = (f"{folder.name}/tests/", f"{folder.name}/pyproject.toml")
            members = [member for member in archive.getmembers() if member.name.startswith(wanted)]
            archive.extractall(sources, members, filter="data")
    return folder


def check(package: str, folder: Path) -> int:
    """Run a suite and say what fails because of us; 0 if nothing does."""
    name = f"{package} {version(package)}"
    outcomes, seen = run(folder, [SUITES[package]], attached=True)
    failed = {test for test, outcome in outcomes.items() if outcome == "failed"}
    print(f"{name}, with ragspan: {counted(outcomes.values())}; {counted(seen.elements())}", flush=True)
    errors = {what for what in seen if what.startswith("error")}
    ours: set[str] = set()
    if failed:
        files = sorted({test.partition("::")[0] for test in failed})
        without, _ = run(folder, files, attached=False)
        again, _ = run(folder, files, attached=True)
        for test in sorted(failed):
            then = f"{without.get(test, 'missing')} without ragspan, {again.get(test, 'missing')} with it"
            if without.get(test) == "passed" and again.get(test) != "passed":
                ours.add(test)
            print(f"  failed, then {then}: {test} {AWARE.get(test, '')}")
    too_little = Counter(outcomes.values())["passed"] < AT_LEAST or seen["captures"] < AT_LEAST
    if too_little:
        print(f"{name}: hardly anything ran, or was captured")
    return int(bool(ours - AWARE.keys() or errors) or too_little)


def run(folder: Path, paths: Sequence[str], *, attached: bool) -> tuple[dict[str, str], Counter[str]]:
    """The outcome of each test, and what our instrumentor saw in all processes."""
    with tempfile.TemporaryDirectory() as kept:
        report = Path(kept) / "report.xml"
        ours = ("-p", "ragspan_attached", f"--ragspan-seen={kept}") if attached else ()
        options = ("-q", "-n", str(WORKERS), "-p", "no:cacheprovider", f"--junitxml={report}", *WITHOUT_NETWORK, *ours)
        command = [sys.executable, "-m", "pytest", *options, *paths]
        ran = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if ran.returncode not in {0, 1}:
            sys.exit(f"{ran.stdout}\npytest ended with {ran.returncode}")
        seen: Counter[str] = Counter()
        for file in Path(kept).glob("*.json"):
            seen.update(json.loads(file.read_text()))
        return dict(outcomes_in(report)), seen


def outcomes_in(report: Path) -> Iterable[tuple[str, str]]:
    """Each test of a report with its outcome. What is called random in each process by its own number is one test."""
    for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314  written by pytest just now
        told = {child.tag for child in case}
        outcome = "failed" if told & {"failure", "error"} else "skipped" if "skipped" in told else "passed"
        yield name_of(case.get("classname", ""), case.get("name", "")), outcome


def name_of(classname: str, name: str) -> str:
    """`tests/test_tools.py::TestTool::test_name`, of what a report calls `tests.test_tools.TestTool`."""
    parts = classname.split(".")
    classes = [part for part in parts if re.match(r"[A-Z]", part)]
    path = "/".join(part for part in parts if part not in classes) + ".py"
    return "::".join([path, *classes, name])


def counted(words: Iterable[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in Counter(words).most_common())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
