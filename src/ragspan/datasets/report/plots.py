"""Writes the report's plots as SVG files, which any browser, document and chat shows."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from ragspan.datasets.report.page import render_plot
from ragspan.datasets.report.view import metric_views
from ragspan.datasets.results import Evaluation

_UNSAFE = re.compile(r"[^a-z0-9]+")
_LONGEST_NAME = 60


def write_plots(evaluation: Evaluation, directory: str | os.PathLike[str]) -> list[Path]:
    """Write a histogram with a box plot for each metric that has scores.

    The files are called `<metric>.svg`; the directory is made if it is not there, and files with these names are replaced.

    Returns:
        The files, in the order of the metrics; none if nothing was scored.

    Raises:
        ImportError: jinja2 is not installed; the extra `report` has it.
        OSError: a file cannot be written.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [metric for metric in metric_views(evaluation) if metric.scores is not None]
    files = [folder / f"{name}.svg" for name in _file_names(metric.name for metric in drawn)]
    for metric, file in zip(drawn, files, strict=True):
        file.write_text(render_plot(metric), encoding="utf-8", newline="\n")
    return files


def _file_names(metrics: Iterable[str]) -> list[str]:
    """Names that any file system takes, all different."""
    names: list[str] = []
    for metric in metrics:
        plain = _UNSAFE.sub("_", metric.lower()).strip("_")[:_LONGEST_NAME] or "metric"
        same = sum(name == plain or name.startswith(f"{plain}_") for name in names)
        names.append(f"{plain}_{same + 1}" if plain in names else plain)
    return names
