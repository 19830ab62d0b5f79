"""The report of an evaluation: one HTML file that loads nothing. Its own script draws the figures, which are in it as JSON."""

from __future__ import annotations

import base64
import hashlib
import heapq
import html
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import msgspec

from ragspan import field_names
from ragspan.evaluate.evaluation import Evaluation, share_lines
from ragspan.evaluate.gates import GateResult
from ragspan.evaluate.label_agreement import agreement
from ragspan.evaluate.report.comparison import Comparison, MetricComparison, ScoreChange, compare
from ragspan.evaluate.rows import EvaluatedRow, ResultFile, replacing
from ragspan.evaluate.summaries import MetricSummary, named_counts, reason_of, wilson_interval
from ragspan.judges.claim_places import locate
from ragspan.judges.judge_protocols import ClaimVerdict
from ragspan.metrics import JudgedContext
from ragspan.metrics.metric import REFUSAL
from ragspan.metrics.metric_catalogue import guide_of
from ragspan.outcomes import Score
from ragspan.records import RagRecord
from ragspan.telemetry.values import bounded, legible
from ragspan.text.limits import fair_limit

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
_MOST_LISTED, _LOWEST_LISTED = 1000, 20
"""Failing answers that a page lists (`ragspan failures` writes all), and answers of the lowest scores where none fails."""
_WHOLE, _ROOM, _LITTLE_ROOM = 50, 12_000, 900
"""So many answers have room for so many characters, the others for few: the page stays below 2 MB."""
_CONTEXTS_SHOWN, _CLAIMS_SHOWN, _SHARES_SHOWN = 20, 40, 20
_LEAST_FAILING, _LEAST_TOLD = 2, 5
"""Failing answers that make a document or a word worth a line, and answers with a verdict, a word."""
_WORD = re.compile(r"[^\W\d_]{4,}")
_COMMON = 0.4
"""A word in a larger part of the questions is not a topic."""
_ASKING = re.compile(
    "what|when|where|which|does|have|will|would|could|should|about|with|from|that|this|there|their|they|into|your|many|much|long"
    "|need|please|tell"
)
_ORDER = ("unsupported", "unsure", "supported")
_Counts = defaultdict[str, list[int]]
"""Of answers that have something in common: how many fail, and how many there are."""


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
        (wilson_interval(one.failing / one.labelled, one.labelled).lower, f"{name} {value}", one)
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


# Answers: those that fail, and what they share. The worst have most room; claims are marked where they are made and supported


def show_failing(evaluation: Evaluation) -> dict[str, Any]:
    """All that the page shows of answers: those that fail, else those of the lowest scores, and those without a verdict or any score."""
    documents, words = _Counts(lambda: [0, 0]), _Counts(lambda: [0, 0])
    judging = {one.metric for one in evaluation.summary.values() if one.labelled}
    copies: Counter[int] = Counter()

    def counted() -> Iterator[tuple[EvaluatedRow, bool]]:
        for row in evaluation.all_rows():
            told = {one.label for one in row.of_one_judge.values()} - {None}
            for counts, names in ((documents, _documents(row.record)), (words, _words(row.record.question))):
                for name in names if told else ():
                    counts[name][0] += "fail" in told
                    counts[name][1] += 1
            is_open = not row.scores or any(not row.scores[one].label for one in judging & row.scores.keys())
            if row.failing or is_open or (row.scores and not evaluation.failing):
                copies[alike(row)] += 1
                if copies[alike(row)] == 1:
                    yield row, is_open

    def alike(row: EvaluatedRow) -> int:
        """The same for answers that the page could not tell apart, whatever they are chosen by."""
        record, labels = row.record, [(metric, score.label) for metric, score in row.scores.items()]
        columns = [str(record.metadata.get(name)) for name in evaluation.by_dimension]
        return hash((record.question, record.response, *labels, *columns, frozenset(_documents(record))))

    found = heapq.nsmallest(_MOST_LISTED, counted(), key=lambda one: one[0].failure_rank)
    least = _MOST_LISTED if any(row.failing for row, _ in found) else _LOWEST_LISTED
    listed = [row for at, (row, is_open) in enumerate(found) if at < least or is_open]
    usual = evaluation.failing / max(evaluation.labelled, 1)
    most = max(_COMMON * evaluation.rows, _LEAST_FAILING)
    topics = _shares(
        {name: one for name, one in words.items() if _LEAST_TOLD <= one[1] <= most and one[0] > usual * one[1]}
    )
    by, names = list(evaluation.by_dimension), {str(one["name"]) for one in topics}
    answers = [
        {"copies": copies[alike(row)], **_answer(row, _ROOM if at < _WHOLE else _LITTLE_ROOM, by, names)}
        for at, row in enumerate(listed)
    ]
    return {"answers": answers, "documents": _shares(documents), "topics": topics}


def _documents(record: RagRecord) -> set[str]:
    """Where the contexts are from, as they or their metadata say; else their beginnings."""
    names = set()
    for context in record.contexts or ():
        known = [context.source, *(context.metadata.get(name) for name in field_names.SOURCE), context.id]
        named = next((one for one in known if isinstance(one, str) and one), None)
        names.add(bounded(named or bounded(" ".join(context.text.split()), 60), 120))
    return names


def _words(question: str | None) -> set[str]:
    return {word for word in _WORD.findall((question or "").lower()) if not _ASKING.fullmatch(word)}


def _shares(counts: Mapping[str, Sequence[int]]) -> list[dict[str, str | int]]:
    """How many of the answers with one thing in common fail, those with most failing answers first."""
    kept = sorted((-failing, answers, name) for name, (failing, answers) in counts.items() if failing >= _LEAST_FAILING)
    return [{"name": name, "failing": -failing, "answers": answers} for failing, answers, name in kept[:_SHARES_SHOWN]]


def _answer(row: EvaluatedRow, room: int, by: Sequence[str], topics: set[str]) -> dict[str, Any]:
    record = row.record
    worst = min(row.failing.values(), key=lambda score: score.value, default=None)
    response = _cut(record.response, int(room * 0.3))
    contexts = _contexts(row, int(room * 0.6))
    made = (item for score in row.scores.values() for item in score.evidence if isinstance(item, ClaimVerdict))
    claims = [
        {"number": number, "verdict": one.verdict, "claim": one.claim or "", "explanation": one.explanation}
        for number, one in enumerate(made, 1)
    ]
    claims = sorted(claims, key=lambda one: _ORDER.index(str(one["verdict"])))[:_CLAIMS_SHOWN]
    _mark(claims, response, contexts)
    scores: list[dict[str, Any]] = []
    for metric, outcome in row.outcomes.items():
        if isinstance(outcome, Score):
            about: dict[str, Any] = {"state": outcome.label or "scored", "value": float(outcome.value)}
            about |= {"threshold": outcome.threshold, "judge": outcome.judge}
        else:
            about = {"state": "not scored", "reason": reason_of(outcome)}
        said = next(filter(None, (getattr(outcome, name, None) for name in ("explanation", "message", "detail"))), "")
        scores.append({"metric": metric, "explanation": said[:1500], **about})
    return {
        "row": row.row,
        "record_id": record.record_id,
        "question": _cut(record.question, int(room * 0.1)),
        "response": response,
        "contexts": contexts,
        "context_count": None if record.contexts is None else len(record.contexts),
        "scores": scores,
        "claims": claims,
        "finding": (worst.explanation or "")[:300] if worst else "",
        "groups": {
            "metric": list(row.failing),
            "document": sorted(_documents(record)),
            "cause": [worst.cause.replace("_", " ")] if worst and worst.cause else [],
            "judge": [worst.judge] if worst and worst.judge else [],
            "word of the question": sorted(_words(record.question) & topics),
            **{name: [str(record.metadata[name])] if name in record.metadata else [] for name in by},
        },
    }


def _cut(text: str | None, room: int) -> dict[str, Any]:
    text = (text or "").strip()
    return {"text": text[:room], "omitted": max(len(text) - room, 0)}


def _contexts(row: EvaluatedRow, room: int) -> list[dict[str, Any]]:
    """The first contexts, those that were useful before others, in prompt order. Long texts share the room equally."""
    contexts = row.record.contexts or ()
    scores = [row.scores[name] for name in ("context_utilization", "chunk_attribution") if name in row.scores]
    judged = (item for score in scores for item in score.evidence if isinstance(item, JudgedContext))
    useful = {item.index: item.value > 0 for item in judged}
    chosen = sorted(sorted(range(len(contexts)), key=lambda index: not useful.get(index))[:_CONTEXTS_SHOWN])
    limit = fair_limit([len(contexts[index].text) for index in chosen], room)
    return [
        {
            "number": index + 1,
            "name": contexts[index].source or contexts[index].id,
            **_cut(contexts[index].text, limit),
            "useful": useful.get(index),
        }
        for index in chosen
    ]


def _mark(claims: Sequence[Mapping[str, Any]], response: dict[str, Any], contexts: Sequence[dict[str, Any]]) -> None:
    """Mark the sentences of the response that make claims, the worst verdict of each, and what supports them in the contexts."""
    marks: defaultdict[int, dict[int, dict[str, Any]]] = defaultdict(dict)
    """By text, of which the response is -1, and by where a mark begins."""
    places = locate([one["claim"] for one in claims], response["text"], [one["text"] for one in contexts])
    for claim, (sentence, supports) in zip(claims, places, strict=True):
        found = [] if sentence is None else [(-1, *sentence, claim["verdict"])]
        found += [(*place, "supports") for place in supports if claim["verdict"] == "supported"]
        for text, start, end, verdict in found:
            mark = marks[text].setdefault(start, {"start": start, "end": end, "verdict": verdict, "numbers": []})
            mark["numbers"].append(claim["number"])
    for text, shown in enumerate([response, *contexts], -1):
        shown["marks"] = [marks[text][start] for start in sorted(marks[text])]
