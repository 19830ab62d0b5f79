"""Shows findings: as lines that people read, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from ragspan.doctor.findings import Check, Diagnosis, Finding, State, exit_code
from ragspan.telemetry import semconv
from ragspan.telemetry.console import outcome_line
from ragspan.telemetry.providers import own_version

_COLOURS: dict[State, str] = {"ok": "green", "warning": "yellow", "failed": "bold red", "skipped": "dim"}
_TITLES: dict[Check, str] = {
    "settings": "Settings",
    "sink": "One record to the broker",
    "telemetry": "OpenTelemetry, as OTEL_* sets it up",
    "judge": "Judge: what it said about one record",
    "endpoint": "Endpoint: what it said about the record's spans",
    "record": "One record through all of it",
    "helper": "A second record through the helper process",
}
_VERDICTS = {
    0: "All is well: scores go where they should.",
    1: "Something is in the way of scores: see what failed above.",
    2: "A setting cannot be used: see what failed above.",
}


def shown(diagnosis: Diagnosis) -> RenderableType:
    """One check with its findings, and the trace that it made."""
    lines = Table.grid(padding=(0, 2))
    lines.add_column(no_wrap=True, min_width=len("skipped"))
    lines.add_column(overflow="fold")
    for finding in diagnosis.findings:
        lines.add_row(Text(finding.state, style=_COLOURS[finding.state]), _words(finding))
    title = Text(_TITLES[diagnosis.check], style="bold")
    trees = [Padding(_tree(diagnosis), (0, 0, 0, 2))] if diagnosis.scored and diagnosis.spans else []
    return Group(title, Padding(lines, (0, 0, 0, 2)), *trees, "")


def _words(finding: Finding) -> Text:
    words = Text(finding.found)
    if finding.advice:
        words.append(f"\n→ {finding.advice}", style="dim" if finding.state == "ok" else "")
    return words


def _tree(diagnosis: Diagnosis) -> Tree:
    """The trace: the root span, those below it, and the outcomes on the answer's span."""
    root, *others = sorted(diagnosis.spans, key=lambda span: span.parent is not None)
    tree = Tree(Text(root.name, style="bold"), guide_style="dim")
    answer = tree
    for span in others:
        branch = tree.add(Text(span.name, style="bold"))
        answer = branch if semconv.RECORD_ID in (span.attributes or {}) and answer is tree else answer
    for metric, outcome in (diagnosis.scored.outcomes if diagnosis.scored else {}).items():
        answer.add(outcome_line(metric, outcome, getattr(outcome, "explanation", None)))
    return tree


def verdict(findings: Sequence[Finding]) -> Text:
    """The last line, with the warnings counted."""
    code = exit_code(findings)
    words = Text(_VERDICTS[code], style="bold red" if code else "bold green")
    warnings = sum(finding.state == "warning" for finding in findings)
    if warnings:
        words.append(f" {warnings} {'warning' if warnings == 1 else 'warnings'}.", style="yellow")
    return words


def as_json(findings: Sequence[Finding]) -> str:
    """All findings as JSON text, for a program or a bug report."""
    plain = {
        "ragspan": own_version(),
        "exit_code": exit_code(findings),
        "findings": [
            {
                "check": finding.check,
                "state": finding.state,
                "found": finding.found,
                "advice": finding.advice,
                "facts": dict(finding.facts),
            }
            for finding in findings
        ],
    }
    return json.dumps(plain, indent=2, ensure_ascii=False, default=str) + "\n"
