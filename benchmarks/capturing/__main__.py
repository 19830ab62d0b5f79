"""Runs the cases of one framework with one peer in this process, which reaches nothing but this machine.

python -m capturing FRAMEWORK PEER FILE [--theme NAME] [--case WORDS] [--conformance FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from capturing.offline import stay_offline

ROOT = Path(__file__).parents[2]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("framework")
    parser.add_argument("peer")
    parser.add_argument("file", type=Path)
    parser.add_argument("--theme")
    parser.add_argument("--case")
    parser.add_argument("--conformance", type=Path)
    arguments = parser.parse_args()
    stay_offline()
    if arguments.conformance:
        _run_conformance(arguments)
    import pytest

    from capturing.cases import Cases
    from capturing.readers import PEERS

    cases = Cases(peer=PEERS[arguments.peer].attach(arguments.framework), only=arguments.case)
    tests = ROOT / "integrations" / arguments.framework / "tests"
    if arguments.theme:
        tests /= f"test_{arguments.theme}.py"
    options = ["-q", "--no-header", "-p", "no:cacheprovider", "-o", "filterwarnings=ignore", f"--rootdir={ROOT}"]
    status = pytest.main([str(tests), *options], plugins=[cases])
    arguments.file.write_text(json.dumps([asdict(case) for case in cases.ran]))
    sys.stdout.flush()
    # Exporting threads of a peer may wait for servers that are not there.
    os._exit(0 if status in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED} else 1)


def _run_conformance(arguments: argparse.Namespace) -> NoReturn:
    from capturing.conformance import problems_by_case
    from capturing.readers import PEERS

    peer: Any = PEERS[arguments.peer].attach(arguments.framework)
    cases = dict(problems_by_case(arguments.framework, peer, arguments.conformance))
    arguments.file.write_text(json.dumps(cases))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
