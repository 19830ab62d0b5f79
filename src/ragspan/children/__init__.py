"""`ragspan run` reaches the processes that its program starts: `PYTHONPATH` names a folder with a `sitecustomize` for them.

A process is configured once, when it has imported a framework or ragspan, so that helpers that answer nothing stay as they are.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from ragspan.config import OF_RAGSPAN_RUN
from ragspan.throttled_log import log_line

_AT_START = str(Path(__file__).parent / "at_start")
_UNREACHED = (
    "ragspan run: Python was started with -I, -E or -S, and starts other processes with the same option; their answers "
    "are not scored. Start it without, or call ragspan.configure() in the program"
)


def reach_children(folder: Path, *, frameworks: Iterable[str]) -> None:
    """Let each Python interpreter that this process starts from now on be configured, after the import of one of the frameworks.

    Modules that a variable names may be in the program's folder.
    """
    os.environ[OF_RAGSPAN_RUN] = os.pathsep.join([str(folder), *frameworks])
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path not in {_AT_START, ""}]
    os.environ["PYTHONPATH"] = os.pathsep.join([_AT_START, *others])
    if sys.flags.ignore_environment or sys.flags.no_site:
        log_line(logging.WARNING, _UNREACHED)
