"""`ragspan run` reaches the processes that its program starts.

`PYTHONPATH` names a folder with a `sitecustomize` for them, as with `opentelemetry-instrument`. Each new Python interpreter imports
that before anything of the program. A fork needs nothing of this.

Guarantees:
- A process is configured, by the variables of the program's first process, when it has imported a framework, or ragspan, and only
  once. So it starts as fast as without ragspan, and helpers that answer nothing, such as multiprocessing's, stay as they are.
- The `sitecustomize` that ours hides is run first, and stays in its place. The search path is as without ours.
- Whatever goes wrong in a child is one line on its stderr. The child goes on all the same.
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
