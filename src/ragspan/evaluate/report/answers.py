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
from ragspan.evaluate.evaluated import Evaluation
from ragspan.evaluate.rows import EvaluatedRow
from ragspan.judges.claim_places import locate
from ragspan.judges.judge_protocols import ClaimVerdict, ContextVerdict
from ragspan.metrics import JudgedContext
from ragspan.outcomes import MetricFailure, Outcome, Score
from ragspan.records import RagRecord, RetrievedContext
from ragspan.text.limits import fair_limit

_MOST_LISTED = 1000
"""Failing answers that a page lists; `ragspan failures` writes all."""
_WHOLE, _ROOM, _LITTLE_ROOM = 50, 12_000, 900
"""So many answers have room for so many characters, the others for few: the page stays below 2 MB."""
_CONTEXTS_SHOWN, _CLAIMS_SHOWN, _SHARES_SHOWN = 20, 40, 20
_LEAST_FAILING = 2
"""Failing answers that make a document or a word worth a line."""
_WORD = re.compile(r"[^\W\d_]{4,}")
_COMMON = 0.4
"""A word in a larger part of the questions is not a topic."""
_ASKING = re.compile(
    "what|when|where|which|does|have|will|would|could|should|about|with|from|that|this|there|their|they|into|your|many|much|long"
    "|need|please|tell"
)
_ORDER = ("unsupported", "unsure", "supported")


def show_failing(evaluation: Evaluation) -> dict[str, Any]:
    """All that the page shows of answers. Reads the rows once; where no answer fails it has those of the lowest scores."""
    documents: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    words: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    worst: list[EvaluatedRow] = []
    for row in evaluation.all_rows():
        for counts, names in ((documents, _documents(row.record)), (words, _words(row.record.question))):
            for name in names:
                counts[name][0] += bool(row.failing)
                counts[name][1] += 1
        if row.failing:
            worst.append(row)
            if len(worst) > 2 * _MOST_LISTED:
                worst = heapq.nsmallest(_MOST_LISTED, worst, key=lambda one: one.badness)
    usual = evaluation.failing / max(evaluation.rows, 1)
    most = max(_COMMON * evaluation.rows, _LEAST_FAILING)
    topics = {name: count for name, count in words.items() if count[1] <= most and count[0] / count[1] > usual}
    shown_topics = _shares(topics)
    listed = heapq.nsmallest(_MOST_LISTED, worst or evaluation.worst, key=lambda one: one.badness)
    by = list(evaluation.by_dimension)
    names = {str(one["name"]) for one in shown_topics}
    answers = [_answer(row, _ROOM if at < _WHOLE else _LITTLE_ROOM, by, names) for at, row in enumerate(listed)]
    return {"answers": answers, "documents": _shares(documents), "topics": shown_topics}


def _documents(record: RagRecord) -> set[str]:
    return {_name(context)[:120] for context in record.contexts or ()}


def _name(context: RetrievedContext) -> str:
    """Where a context is from, as it or its metadata says; else its beginning."""
    known = [context.source, *(context.metadata.get(name) for name in field_names.SOURCE), context.id]
    named = next((one for one in known if isinstance(one, str) and one), None)
    return named or " ".join(context.text.split())[:60]


def _words(question: str | None) -> set[str]:
    return {word for word in _WORD.findall((question or "").lower()) if not _ASKING.fullmatch(word)}


def _shares(counts: Mapping[str, Sequence[int]]) -> list[dict[str, str | int]]:
    """How many of the answers with one thing in common fail, those with most failing answers first."""
    found = [(-failing, -failing / answers, name) for name, (failing, answers) in counts.items()]
    kept = sorted(one for one in found if -one[0] >= _LEAST_FAILING)[:_SHARES_SHOWN]
    return [{"name": name, "failing": -failing, "answers": counts[name][1]} for failing, _, name in kept]


def _answer(row: EvaluatedRow, room: int, by: Sequence[str], topics: set[str]) -> dict[str, Any]:
    record = row.record
    scores = [_score(metric, outcome) for metric, outcome in row.outcomes.items()]
    worst = min(row.failing.values(), key=lambda score: score.value, default=None)
    response = _cut(record.response, int(room * 0.3))
    contexts = _contexts(record.contexts or (), row.outcomes, int(room * 0.6))
    claims = [
        {"number": number, "verdict": one.verdict, "claim": one.claim or "", "explanation": one.explanation}
        for number, one in enumerate((one for _, one in _evidence(row.outcomes) if isinstance(one, ClaimVerdict)), 1)
    ]
    claims = sorted(claims, key=lambda one: _ORDER.index(str(one["verdict"])))[:_CLAIMS_SHOWN]
    marks = _mark(claims, response["text"], contexts)
    groups: dict[str, list[str]] = {
        "metric": list(row.failing),
        **{name: [str(record.metadata[name])] for name in by if name in record.metadata},
        "document": sorted(_documents(record)),
        "cause": [worst.cause.replace("_", " ")] if worst and worst.cause else [],
        "judge": [worst.judge] if worst and worst.judge else [],
        "word of the question": sorted(_words(record.question) & topics),
    }
    return {
        "row": row.row,
        "record_id": record.record_id,
        "question": _cut(record.question, int(room * 0.1)),
        "response": {**response, "marks": marks},
        "contexts": contexts,
        "context_count": None if record.contexts is None else len(record.contexts),
        "scores": scores,
        "claims": claims,
        "finding": (worst.explanation or "")[:300] if worst else "",
        "groups": groups,
    }


def _score(metric: str, outcome: Outcome) -> dict[str, Any]:
    if isinstance(outcome, Score):
        words = (outcome.explanation or "")[:1500]
        more = {"threshold": outcome.threshold, "judge": outcome.judge, "value": float(outcome.value)}
        return {"metric": metric, "state": outcome.label or "scored", "explanation": words, **more}
    if isinstance(outcome, MetricFailure):
        reason, words = outcome.error_type, outcome.message
    else:
        reason, words = outcome.reason, outcome.detail or ""
    return {"metric": metric, "state": "not scored", "explanation": words[:1500], "reason": reason}


def _evidence(outcomes: Mapping[str, Outcome]) -> Iterator[tuple[str, object]]:
    for metric, outcome in outcomes.items():
        for item in outcome.evidence if isinstance(outcome, Score) else ():
            yield metric, item


def _cut(text: str | None, room: int) -> dict[str, Any]:
    text = (text or "").strip()
    return {"text": text[:room], "omitted": max(len(text) - room, 0)}


def _contexts(contexts: Sequence[RetrievedContext], outcomes: Mapping[str, Outcome], room: int) -> list[dict[str, Any]]:
    """The first contexts, those that were useful before others, in prompt order. Long texts share the room equally."""
    notes: defaultdict[int, dict[str, str | None]] = defaultdict(dict)
    useful: Counter[int] = Counter()
    for metric, item in _evidence(outcomes):
        if isinstance(item, ContextVerdict):
            notes[item.index]["useful" if item.useful else "not used"] = item.explanation
            useful[item.index] += item.useful
        elif isinstance(item, JudgedContext):
            notes[item.index][f"{metric} {item.value:.2f}"] = item.explanation
    chosen = sorted(sorted(range(len(contexts)), key=lambda index: not useful[index])[:_CONTEXTS_SHOWN])
    limit = fair_limit([len(contexts[index].text) for index in chosen], room)
    return [
        {
            "number": index + 1,
            "name": contexts[index].source or contexts[index].id,
            **_cut(contexts[index].text, limit),
            "useful": index in useful and useful[index] > 0,
            "notes": [{"words": words, "explanation": why} for words, why in notes[index].items()],
            "marks": [],
        }
        for index in chosen
    ]


def _mark(
    claims: Sequence[Mapping[str, Any]], response: str, contexts: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The sentences of the response that make claims, the worst verdict of each; marks what supports them in the contexts."""
    made: dict[tuple[Any, Any], dict[str, Any]] = {}
    places = locate([one["claim"] for one in claims], response, [one["text"] for one in contexts])
    for claim, place in zip(claims, places, strict=True):
        if place.response is not None:
            mark = {
                "start": place.response.start,
                "end": place.response.end,
                "verdict": claim["verdict"],
                "numbers": [],
            }
            made.setdefault((mark["start"], mark["end"]), mark)["numbers"].append(claim["number"])
        for at in place.contexts if claim["verdict"] == "supported" else ():
            held: list[dict[str, Any]] = contexts[at.context]["marks"]
            same = next((one for one in held if one["start"] == at.start), None)
            if same is None:
                held.append(same := {"start": at.start, "end": at.end, "verdict": "supports", "numbers": []})
            same["numbers"].append(claim["number"])
    for one in contexts:
        one["marks"].sort(key=lambda mark: mark["start"])
    return sorted(made.values(), key=lambda mark: mark["start"])
