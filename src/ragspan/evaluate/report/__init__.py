"""The report of an evaluation: one HTML file that loads nothing. Its own script draws the figures, which are in it as JSON."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from ragspan.evaluate.evaluation import Evaluation, share_lines
from ragspan.evaluate.gates import GateResult
from ragspan.evaluate.label_agreement import agreement
from ragspan.evaluate.report.answers import show_failing
from ragspan.evaluate.report.comparison import Comparison, MetricComparison, Regression, compare
from ragspan.evaluate.report.signs import Sign, signs_of
from ragspan.evaluate.rows import ResultFile
from ragspan.evaluate.written_files import replacing
from ragspan.metrics.metric_catalogue import guide_of
from ragspan.telemetry.values import legible

__all__ = ["Comparison", "MetricComparison", "Regression", "Sign", "compare", "signs_of", "write_report"]


def write_report(
    evaluation: Evaluation,
    path: str | os.PathLike[str],
    *,
    baseline: Evaluation | ResultFile | None = None,
    gates: Sequence[GateResult] = (),
) -> None:
    """Write the evaluation as one self-contained HTML file, which opens from a disk and loads nothing.

    Args:
        evaluation: what `ragspan.evaluate.evaluate` returned.
        path: the file; an existing one is replaced, and never half-written. Only its owner may read it.
        baseline: an earlier run to compare with, as an evaluation or as the result file of one.
        gates: what was asked of the scores, and whether it held; see `ragspan.evaluate.gates.check_gates`.

    Raises:
        TableError: the file cannot be written.
    """
    title = "RAG evaluation" + (f" of {evaluation.source}" if evaluation.source else "")
    agreed = agreement(evaluation)
    guides = {metric: guide_of(metric) for metric in evaluation.metrics}
    earlier = baseline.path.name if isinstance(baseline, ResultFile) else baseline and baseline.source
    content = {
        "title": title,
        "figures": evaluation.figures() | {"bad_rows": []},
        "why_not_scored": None if evaluation.is_scored else evaluation.why_not_scored,
        "questions": {metric: guide.question for metric, guide in guides.items() if guide is not None},
        "share": share_lines(evaluation),
        "gates": [{"text": one.trouble or str(one.gate), "held": one.trouble is None} for one in gates],
        "agreement": agreed,
        "rate": agreed.rate_in_words + "." if agreed and agreed.failures else "",
        "signs": signs_of(evaluation),
        "comparison": None if baseline is None else compare(evaluation, baseline),
        "baseline": earlier or "the baseline",
        "bad_rows": [str(row) for row in evaluation.bad_rows[:20]],
        "version": version("ragspan"),
        "written": datetime.now(timezone.utc).strftime("%d %B %Y, %H:%M UTC"),
        **show_failing(evaluation),
    }
    # The data end no element: each `<` is escaped. The page's policy lets no other script run than its own.
    template = (resources.files(__name__) / "report.html").read_text(encoding="utf-8")
    (script,) = re.findall(r"<script>(.*?)</script>", template, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data = json.dumps(_legible(msgspec.to_builtins(content)), ensure_ascii=False).replace("<", "\\u003c")
    filled = {"TITLE": html.escape(legible(title)), "SCRIPT_HASH": f"sha256-{digest}", "DATA": data}
    text = re.sub("@(TITLE|SCRIPT_HASH|DATA)@", lambda found: filled[found[1]], template)
    with replacing(Path(path)) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")


def _legible(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {legible(str(name)): _legible(value) for name, value in plain.items()}
    if isinstance(plain, (list, tuple)):
        return list(map(_legible, plain))
    return legible(plain) if isinstance(plain, str) else plain
