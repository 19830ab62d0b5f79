"""Writes the report's file."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path

from ragspan.datasets.report.comparison import ScoredRun
from ragspan.datasets.report.page import render
from ragspan.datasets.report.view import view_of
from ragspan.datasets.results import Evaluation


def write_report(
    evaluation: Evaluation,
    path: str | os.PathLike[str],
    *,
    baseline: ScoredRun | None = None,
    title: str | None = None,
    written_at: datetime | None = None,
) -> None:
    """Write the evaluation as one self-contained HTML file, which opens from a disk and asks for nothing.

    Args:
        evaluation: what `ragspan.datasets.evaluate` returned.
        path: the file; an existing one is replaced, and never half-written. Only its owner may read it.
        baseline: an earlier run to compare with, as an evaluation or as the result file of one.
        title: stands at the top.
        written_at: the time that the page tells, now if not given.

    Raises:
        ImportError: jinja2 is not installed; the extra `report` has it.
        OSError: the file cannot be written.
    """
    when = written_at or datetime.now(timezone.utc)
    _replace(Path(path), render(view_of(evaluation, baseline=baseline, title=title, written_at=when)))


def _replace(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.touch(mode=0o600)  # it quotes answers and contexts
        partial.write_text(text, encoding="utf-8", newline="\n")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
