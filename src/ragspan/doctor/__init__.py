"""`ragspan doctor`, for somebody who sees no scores: each fact is one finding, with what to do about it; and `ragspan judges`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ragspan.addresses import shown_url
from ragspan.arguments import counted
from ragspan.installed import part_names
from ragspan.judges.judge_catalogue import EMBEDDED, JUDGES
from ragspan.judges.presets import PRESETS

Check: TypeAlias = Literal["settings", "sink", "judge", "endpoint", "record"]
State: TypeAlias = Literal["ok", "warning", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
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


def exit_code(findings: Iterable[Finding]) -> int:
    """0 if nothing failed, 2 if a setting cannot be used, 1 if something else failed."""
    failures = [finding for finding in findings if finding.state == "failed"]
    return 2 if any(finding.code == MISUSE for finding in failures) else int(bool(failures))


_COLOURS: dict[State, str] = {"ok": "green", "warning": "yellow", "failed": "bold red", "skipped": "dim"}
_TITLES: dict[Check, str] = {  # in the order of the checks; sink only where there is one
    "settings": "Settings",
    "sink": "One record to the broker, and who takes it",
    "judge": "Judge: what it said about one record",
    "endpoint": "Endpoint: what it said about the record's spans",
    "record": "One record through all of it",
}
MISUSE, HANGING = "wrong_setting", "did_not_end"
"""Codes: a setting has a value that cannot be used at all; something that a check began has not ended, and never may."""
_ARRIVED = {"arrived", "printed"}
"""Codes of findings that say where scores were seen to go."""


def doctor(
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="The longest that each check may take.")
    ] = 30.0,
) -> None:
    """Find out why you see no scores: settings, judge, exporters, endpoint, and one record through all of them.

    It reads RAGSPAN_* and OTEL_* as your application does, so run it with the same environment. It has the judge
    score one small record and sends its trace. No key, no header's value and no text of yours is shown.

    Exit codes: 0 nothing failed; 1 something did; 2 a setting or an argument cannot be used.
    """
    from ragspan.doctor.examination import examine

    console = Console(highlight=False)
    findings: list[Finding] = []
    for finding in examine(timeout=timeout):
        if not findings or findings[-1].check != finding.check:
            console.print(f"\n{_TITLES[finding.check]}", style="bold")
        words = Text(finding.found)
        if finding.advice:
            words.append(f"\n→ {finding.advice}", style="dim" if finding.state == "ok" else "")
        line = Table.grid(padding=(0, 2))
        line.add_column(no_wrap=True, min_width=len("  skipped"))
        line.add_column(overflow="fold")
        line.add_row(Text(f"  {finding.state}", style=_COLOURS[finding.state]), words)
        console.print(line)
        findings.append(finding)
    console.print("\n", verdict(findings), sep="")
    code = exit_code(findings)
    if any(finding.code == HANGING for finding in findings):
        sys.stdout.flush()
        os._exit(code)  # the interpreter would wait for the check that hangs
    raise typer.Exit(code)


def verdict(findings: Sequence[Finding]) -> Text:
    """The last line, with the warnings counted."""
    if code := exit_code(findings):
        failed = ("", "Something is in the way of scores", "A setting cannot be used")[code]
        words = Text(f"{failed}: see what failed above.", style="bold red")
    elif any(finding.code in _ARRIVED for finding in findings):
        words = Text("All is well: scores go where they should.", style="bold green")
    elif any(finding.code == "worker_takes" for finding in findings):
        words = Text(
            "A worker takes the records; its own ragspan doctor says whether scores arrive.", style="bold green"
        )
    else:
        words = Text("Nothing failed, but no score was seen to arrive anywhere.", style="bold yellow")
    if warnings := sum(finding.state == "warning" for finding in findings):
        words.append(f" {counted(warnings, 'warning')}.", style="yellow")
    return words


def judges() -> None:
    """List the judges by name, with the address that they ask, and whether their key is set.

    A name and a model go into RAGSPAN_JUDGE, configure(judge=...) and --judge; ragspan doctor asks it. No key is shown.
    """
    rows = [("name", "key", "address"), (EMBEDDED, "none needed", "none: it compares words in this process")]
    for preset in PRESETS.values():
        key = "none needed"
        if preset.key_variable is not None:
            key = f"{preset.key_variable} is set"
        elif preset.keys:
            key = f"{' or '.join(preset.keys)}: not set" + ("" if preset.needs_key else ", may not be needed")
        address = shown_url(preset.base_url) if preset.base_url is not None else preset.shown_address
        rows.append((f"{preset.name}:<model>", key, address))
    rows += [(name, "", f"from the package {source}") for name, source in part_names(JUDGES).items()]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, key, address in rows:
        typer.echo(f"{name.ljust(widths[0])}  {key.ljust(widths[1])}  {address}".rstrip())
