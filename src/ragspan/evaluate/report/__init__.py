"""The report of an evaluation: one HTML file that loads nothing. Its own script draws the figures, which are in it as JSON."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import msgspec

from ragspan.evaluate.evaluation import Evaluation, share_lines
from ragspan.evaluate.gates import GateResult
from ragspan.evaluate.label_agreement import agreement
from ragspan.evaluate.report.answers import show_failing
from ragspan.evaluate.report.comparison import Comparison, MetricComparison, ScoreChange, compare
from ragspan.evaluate.rows import ResultFile, replacing
from ragspan.evaluate.summaries import MetricSummary, named_counts, wilson_interval
from ragspan.metrics.metric import REFUSAL
from ragspan.metrics.metric_catalogue import guide_of
from ragspan.telemetry.values import legible

__all__ = ["Comparison", "MetricComparison", "ScoreChange", "Sign", "compare", "signs_of", "write_report"]

_VERY_LOW = 0.75
"""Of its threshold, below which a median is very low."""
_FEW_PASS = 0.4
"""With a smaller share of answers that pass, most answers fail by more than chance and a strict judge explain."""
_MANY_FAIL = 0.2
"""A metric that so many answers fail is of high risk, and so is what is behind so many of the failing ones."""
_MANY_NOT_SCORED, _MANY_FAILURES = 0.2, 0.02
"""Of all answers; a metric that failed, where it should have had a score, is a fault in the judging."""
_SMALLEST_GROUP, _CLEARLY_WORSE = 10, 1.5
"""Labelled answers of a group, below which its share says little, and how many times as many of them fail as of all, or a tenth more."""
_DO_NOT_APPLY = frozenset({"no_citations", "no_claims", REFUSAL})
"""Reasons with which nothing is missing."""


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
    earlier = baseline.path.name if isinstance(baseline, ResultFile) else baseline and baseline.source
    content = {
        "title": title,
        "figures": evaluation.figures() | {"bad_rows": []},
        "why_not_scored": None if evaluation.is_scored else evaluation.why_not_scored,
        "questions": {metric: guide.question for metric in evaluation.metrics if (guide := guide_of(metric))},
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


# Signs of risk: what a reader should look at, the gravest first


@dataclass(frozen=True, slots=True)
class Sign:
    """One thing that deserves a look."""

    level: Literal["high", "notice"]
    title: str
    figures: str
    """Those behind it, as a sentence."""
    advice: str | None = None
    """What to look at."""
    metrics: tuple[str, ...] = ()
    """That have this sign with the same figures; none where it is of the whole table."""


def signs_of(evaluation: Evaluation) -> list[Sign]:
    """The signs that the scores of a table give, those of high risk first."""
    found: dict[Sign, list[str]] = {sign: [] for sign in _whole_table(evaluation)}
    for summary in evaluation.summary.values():
        for sign in _of_metric(summary):
            found.setdefault(sign, []).append(summary.metric)
    signs = (replace(sign, metrics=tuple(metrics)) for sign, metrics in found.items())
    return sorted(signs, key=lambda sign: sign.level != "high")


def _whole_table(evaluation: Evaluation) -> Iterator[Sign]:
    worst = max(evaluation.summary.values(), key=lambda one: one.failing)
    by = "" if worst.asked is None else " by the embedded judge"
    if worst.failing:
        share = worst.failing / worst.labelled
        figures = f"{worst.failing:,} of {worst.labelled:,} answers fail it{by} ({share:.0%})."
        yield Sign("high" if share >= _MANY_FAIL else "notice", f"Begin with {worst.metric}", figures)
    groups = [
        (wilson_interval(one.failing / one.labelled, one.labelled)[0], f"{name} {value}", one)
        for name, values in evaluation.by_dimension.items()
        for value, summaries in values.items()
        for one in summaries.values()
        if one.labelled >= _SMALLEST_GROUP
    ]
    for least, name, one in sorted(groups, key=lambda group: -group[0])[:1]:
        of_all = evaluation.summary[one.metric].failing / evaluation.summary[one.metric].labelled
        share = one.failing / one.labelled
        if least > of_all and share >= min(_CLEARLY_WORSE * of_all, of_all + 0.1):
            failing = f"{one.failing:,} of its {one.labelled:,} answers fail {one.metric}{by}"
            figures = f"{failing} ({share:.0%}), of all answers {of_all:.0%}."
            yield Sign("high", f"The worst group: {name}", figures)


def _of_metric(summary: MetricSummary) -> Iterator[Sign]:
    """A typical answer that fails is high risk only where few answers pass, or where it is very low: judges are stricter than people."""
    reasons = {reason: count for reason, count in summary.not_scored.items() if reason not in _DO_NOT_APPLY}
    missing, rows = sum(reasons.values()), summary.scored + sum(summary.not_scored.values())
    if missing and (
        missing >= _MANY_NOT_SCORED * rows or summary.failed >= _MANY_FAILURES * rows or not summary.scored
    ):
        figures = f"{missing:,} of {rows:,} answers have no score ({missing / rows:.0%}): {named_counts(reasons)}."
        advice = "Not scored, and why, below; figures are of the other answers. A failure is a fault in the judging."
        yield Sign("high", "many answers have no score", figures, advice)
    lost = {cause.replace("_", " "): count for cause, count in summary.causes.items() if cause != "unsupported"}
    if lost and sum(lost.values()) >= _MANY_FAIL * summary.failing:
        figures = f"Of {summary.failing:,} failing answers: {named_counts(lost)}."
        advice = "rerankers, filters and limits between the search and the prompt."
        yield Sign("high", "documents that were found did not reach the model", figures, advice)
    median, threshold = summary.median, summary.threshold
    is_labelled = 2 * summary.labelled > summary.scored  # a score without a label is a rank
    if is_labelled and median is not None and threshold is not None and round(median, 2) < threshold:
        few_pass = summary.passed < _FEW_PASS * summary.labelled
        figures = f"The median is {median:.2f}; a pass begins at {threshold:.2f}."
        is_grave, guide = few_pass or median < _VERY_LOW * threshold, guide_of(summary.metric)
        title = "most answers fail" if few_pass else "low median"
        yield Sign("high" if is_grave else "notice", title, figures, guide and guide.when_low)
