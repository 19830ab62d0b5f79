"""`ragspan doctor`, for somebody who sees no scores: each fact is one finding, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rich.table import Table
from rich.text import Text

from ragspan.counted import counted

Check: TypeAlias = Literal["settings", "sink", "judge", "endpoint", "record"]
State: TypeAlias = Literal["ok", "warning", "failed", "skipped"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that a check found out."""

    check: Check
    code: str
    """What it is about: the words may change, a code does not."""
    state: State
    """`warning` may keep some scores from being seen, `failed` does; `skipped` could not be looked at."""
    found: str
    advice: str | None = None
    """What to do, where there is something to do or to know."""
    is_misuse: bool = False
    """A setting has a value that cannot be used at all."""
    is_hanging: bool = False
    """Something that the check began has not ended, and never may."""


def finding(check: Check, code: str, state: State, found: str, advice: str | None = None) -> Finding:
    return Finding(check=check, code=code, state=state, found=found, advice=advice)


def misuse(check: Check, error: Exception) -> Finding:
    return Finding(check=check, code="wrong_setting", state="failed", found=str(error), is_misuse=True)


def exit_code(findings: Iterable[Finding]) -> int:
    """0 if nothing failed, 2 if a setting cannot be used, 1 if something else failed."""
    failures = [finding for finding in findings if finding.state == "failed"]
    return 2 if any(finding.is_misuse for finding in failures) else int(bool(failures))


_COLOURS: dict[State, str] = {"ok": "green", "warning": "yellow", "failed": "bold red", "skipped": "dim"}
TITLES: dict[Check, str] = {  # in the order of the checks; sink only where there is one
    "settings": "Settings",
    "sink": "One record to the broker, and who takes it",
    "judge": "Judge: what it said about one record",
    "endpoint": "Endpoint: what it said about the record's spans",
    "record": "One record through all of it",
}
_ARRIVED = {"arrived", "printed", "worker_takes"}
"""Codes of findings that say where scores were seen to go."""


def shown(finding: Finding) -> Table:
    """The state, what was found, and what to do about it."""
    words = Text(finding.found)
    if finding.advice:
        words.append(f"\n→ {finding.advice}", style="dim" if finding.state == "ok" else "")
    line = Table.grid(padding=(0, 2))
    line.add_column(no_wrap=True, min_width=len("  skipped"))
    line.add_column(overflow="fold")
    line.add_row(Text(f"  {finding.state}", style=_COLOURS[finding.state]), words)
    return line


def verdict(findings: Sequence[Finding]) -> Text:
    """The last line, with the warnings counted."""
    if code := exit_code(findings):
        failed = ("", "Something is in the way of scores", "A setting cannot be used")[code]
        words = Text(f"{failed}: see what failed above.", style="bold red")
    elif any(finding.code in _ARRIVED for finding in findings):
        words = Text("All is well: scores go where they should.", style="bold green")
    else:
        words = Text("Nothing failed, but no score was seen to arrive anywhere.", style="bold yellow")
    if warnings := sum(finding.state == "warning" for finding in findings):
        words.append(f" {counted(warnings, 'warning')}.", style="yellow")
    return words
