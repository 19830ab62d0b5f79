"""`ragspan run` reaches the processes that its program starts.

`PYTHONPATH` names a folder with a `sitecustomize` for them, as with `opentelemetry-instrument`. Each new Python interpreter imports
that before anything of the program. A fork needs nothing of this.

Guarantees:
- A process is configured when it has imported a framework, or ragspan, and only once. So it starts as fast as without ragspan, and
  helpers that answer nothing, such as multiprocessing's, stay as they are.
- It is configured by the same variables as the program's first process.
- The `sitecustomize` that ours hides is run first, and stays in its place. The search path is as without ours.
- Whatever goes wrong in a child is one line on its stderr. The child goes on all the same.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from ragspan.config import OF_RAGSPAN_RUN, variable
from ragspan.throttled_log import log_line

AT_START = str(Path(__file__).parent / "at_start")


def reach_children(folder: Path, *, frameworks: Iterable[str]) -> None:
    """Let each Python interpreter that this process starts from now on be configured.

    Args:
        folder: of the program, where a module that a variable names may be.
        frameworks: modules after whose import a process may answer.
    """
    os.environ[OF_RAGSPAN_RUN] = os.pathsep.join([str(folder), *frameworks])
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path not in {AT_START, ""}]
    os.environ["PYTHONPATH"] = os.pathsep.join([AT_START, *others])
    if sys.flags.ignore_environment or sys.flags.no_site:
        message = (
            "ragspan run: Python was started with -I, -E or -S, and starts other processes with the same option; their answers "
            "are not scored. Start it without, or call ragspan.configure() in the program"
        )
        log_line(logging.WARNING, message)


def configure_child() -> None:
    """What `ragspan run` does in its own process, in one that its program has started, with the same folders to find modules in."""
    from ragspan.application import configure

    path = sys.path[:]
    sys.path += [(variable(OF_RAGSPAN_RUN) or "").partition(os.pathsep)[0] or ".", str(Path.cwd())]
    try:
        configure()
    finally:
        sys.path[:] = path
