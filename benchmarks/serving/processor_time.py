"""Processor time of the machine and of single processes, in seconds, as Linux counts it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_IDLE, _IOWAIT, _GUEST = 3, 4, 8
_PARENT, _USER, _SYSTEM = 1, 11, 12
"""Places in `/proc/PID/stat` behind the command, which may hold blanks and stands in brackets."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineTime:
    """What all processors together have done since the machine was started."""

    busy: float
    total: float

    @classmethod
    def now(cls) -> MachineTime:
        first = (_PROC / "stat").read_text(encoding="ascii").splitlines()[0]
        ticks = [int(field) for field in first.split()[1 : _GUEST + 1]]  # guests' time is counted as the user's as well
        idle = ticks[_IDLE] + ticks[_IOWAIT]
        return cls(busy=_seconds(sum(ticks) - idle), total=_seconds(sum(ticks)))


def is_measurable() -> bool:
    return (_PROC / "stat").exists()


def of_process(pid: int) -> float:
    """Seconds that a process has used; 0 once it is gone."""
    fields = _stat(pid)
    return _seconds(int(fields[_USER]) + int(fields[_SYSTEM])) if fields else 0.0


def descendants(pid: int) -> list[int]:
    """The processes that this one has started, and those that they have."""
    parents = {int(entry.name): _parent(int(entry.name)) for entry in _PROC.iterdir() if entry.name.isdigit()}
    found = [pid]
    for one in found:  # grows while it is read
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def _parent(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[_PARENT]) if fields else 0


def _stat(pid: int) -> list[str]:
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()


def _seconds(ticks: int) -> float:
    return ticks / os.sysconf("SC_CLK_TCK")
