"""The signs of life that are watched during a soak: counts, memory, threads, files."""

from __future__ import annotations

import os
import statistics
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from serving import processor_time

from ragspan.engine import EngineStats

_WATCH_INTERVAL = 0.02
_MIB = 1024 * 1024
_HELPER = b"ragspan.engine.helper"
"""Stands in the helper process's command."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One moment."""

    seconds: float
    answers: int
    """That the clients know of."""
    submitted: int
    queued: int
    in_flight: int
    finished: int
    dropped: int
    rss_mib: float
    helper_rss_mib: float
    blocks: int
    """Of memory that Python has allocated for objects."""
    threads: int
    files: int
    open_runs: int
    """Followed by the LangChain handler."""
    open_spans: int
    """Followed by the LlamaIndex handler."""

    @classmethod
    def now(cls, stats: EngineStats, *, seconds: float, answers: int, open_runs: int, open_spans: int) -> Sample:
        return cls(
            seconds=round(seconds, 1),
            answers=answers,
            submitted=stats.submitted,
            queued=stats.queued,
            in_flight=stats.in_flight,
            finished=stats.done,
            dropped=sum(stats.dropped.values()),
            rss_mib=resident_mib(os.getpid()),
            helper_rss_mib=sum(map(resident_mib, helper_pids())),
            blocks=sys.getallocatedblocks(),
            threads=threading.active_count(),
            files=len(list(Path("/proc/self/fd").iterdir())),
            open_runs=open_runs,
            open_spans=open_spans,
        )

    @staticmethod
    def headings() -> str:
        return " ".join(f"{_heading(item.name):>9}" for item in fields(Sample))

    def row(self) -> str:
        return " ".join(f"{_shown(getattr(self, item.name)):>9}" for item in fields(self))


def _heading(name: str) -> str:
    return {"helper_rss_mib": "helper", "rss_mib": "MiB"}.get(name, name.replace("_", " ").removeprefix("open "))


def _shown(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def resident_mib(pid: int) -> float:
    """Memory of a process that is in use; 0 once it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0.0
    return round(pages * os.sysconf("SC_PAGE_SIZE") / _MIB, 1)


def helper_pids() -> list[int]:
    """Of this process's helpers."""
    return [pid for pid in processor_time.descendants(os.getpid()) if _is_helper(pid)]


def _is_helper(pid: int) -> bool:
    try:
        return _HELPER in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def is_conserved(stats: EngineStats) -> bool:
    """Whether every submitted answer is somewhere."""
    somewhere = stats.queued + stats.in_flight + stats.done + sum(stats.dropped.values())
    return stats.submitted == somewhere and stats.done == stats.finished + stats.nothing_to_score


class ConservationWatch:
    """Looks at the counts many times a second, for as long as it is entered."""

    def __init__(self, stats: Callable[[], EngineStats]) -> None:
        self._stats = stats
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.looks = 0
        self.violations: list[EngineStats] = []

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(_WATCH_INTERVAL):
            stats = self._stats()
            self.looks += 1
            if not is_conserved(stats):
                self.violations.append(stats)


def growth(samples: Sequence[Sample], name: str) -> float:
    """How much a figure grew in the second half: the median of the last quarter, less that of the quarter before."""
    values = [float(getattr(sample, name)) for sample in samples]
    half, last = len(values) // 2, len(values) * 3 // 4
    return statistics.median(values[last:]) - statistics.median(values[half:last])
