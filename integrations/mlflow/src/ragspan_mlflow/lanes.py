"""Several requests at the same time.

Guarantees:
- No thread outlives a call: there is nothing that a fork, or the end of the interpreter, could leave behind.
- Where no thread can be started, the caller's does all the work.
- The threads see the caller's context variables, so instrumentation that is suppressed there is suppressed in them.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def in_lanes(work: Callable[[_Job], _Result], jobs: Sequence[_Job], lanes: int) -> list[_Result]:
    """Do all jobs, so many at a time; their results, in order.

    Raises:
        Exception: what a job raised, one of them if several did; no job is begun after it, those under way are waited for.
    """
    run = _Run(work, jobs)
    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(run.drive,), name="ragspan-lane", daemon=True)
        for _ in range(min(lanes, len(jobs)) - 1)
    ]
    started = [thread for thread in threads if _start(thread)]
    run.drive()
    for thread in started:
        thread.join()
    if run.error is not None:
        raise run.error
    return [run.results[place] for place in range(len(jobs))]


class _Run(Generic[_Job, _Result]):
    """Jobs on which several threads work."""

    def __init__(self, work: Callable[[_Job], _Result], jobs: Sequence[_Job]) -> None:
        self._work = work
        self._left = list(enumerate(jobs))[::-1]
        self.results: dict[int, _Result] = {}
        self.error: Exception | None = None

    def drive(self) -> None:
        """Do what nobody does yet, until nothing is left or something went wrong."""
        while self.error is None:
            try:
                place, job = self._left.pop()
            except IndexError:
                return
            try:
                self.results[place] = self._work(job)
            except Exception as error:  # noqa: BLE001 - it is raised in the caller's thread
                self.error = error


def _start(thread: threading.Thread) -> bool:
    try:
        thread.start()
    except RuntimeError:  # the interpreter is at its end, or the system has no more
        return False
    return True
