"""The failing answers of a table as the report shows them, and what they share: documents and words of the question.

Texts are cut to size: the worst answers have most room. Claims are marked where the response makes them and a context supports them.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragspan import field_names
from ragspan.evaluate.evaluation import Evaluation
from ragspan.evaluate.rows import EvaluatedRow
from ragspan.evaluate.summaries import reason_of
from ragspan.judges.claim_places import locate
from ragspan.judges.judge_protocols import ClaimVerdict
from ragspan.metrics import JudgedContext
from ragspan.outcomes import Score
from ragspan.records import RagRecord
from ragspan.telemetry.values import bounded
from ragspan.text.limits import fair_limit

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

    found = heapq.nsmallest(_MOST_LISTED, counted(), key=lambda one: one[0].badness)
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
