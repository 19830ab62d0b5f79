"""All failing answers of a table, and what they share: columns, documents, words of the question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ragspan.evaluate.evaluated import Evaluation
from ragspan.evaluate.progress import SOURCE, source_of
from ragspan.evaluate.rows import EvaluatedRow
from ragspan.records import RagRecord

MOST_LISTED = 1000
"""Failing answers that a page lists; `ragspan failures` writes all."""
_TEXT, _FINDING = 140, 180  # characters
_LEAST_FAILING = 2
"""Failing answers that make a document or a word worth a line."""
_SHOWN = 20  # documents, words
_WORD = re.compile(r"[^\W\d_]{4,}")
_COMMON = 0.4
"""A word in a larger part of the questions is not a topic."""
_ASKING = frozenset(
    {"what", "when", "where", "which", "does", "have", "will", "would", "could", "should", "about", "with", "from"}
    | {"that", "this", "there", "their", "they", "into", "your", "many", "much", "long", "need", "please", "tell"}
)


class Share(NamedTuple):
    """How many of the answers with one thing in common fail."""

    name: str
    failing: int
    answers: int


class ListedAnswer(NamedTuple):
    """A failing answer, in a line of the page."""

    row: int
    question: str
    response: str
    scores: Mapping[str, float]
    """Of the metrics that it fails."""
    finding: str
    """Of the first of these with the lowest score."""
    groups: Mapping[str, Sequence[str]]
    """What it may be chosen by: its values by column."""


@dataclass(kw_only=True)
class Failing:
    """The failing answers of a table."""

    answers: list[ListedAnswer] = field(default_factory=list)
    count: int = 0
    documents: list[Share] = field(default_factory=list)
    """Those with most failing answers first."""
    topics: list[Share] = field(default_factory=list)
    """Words of questions that fail more often than questions do; those with most such failures first."""

    @property
    def choices(self) -> dict[str, list[tuple[str, int]]]:
        """By column, its values with the number of listed answers, the most frequent first."""
        found: dict[str, Counter[str]] = {}
        for answer in self.answers:
            for name, values in answer.groups.items():
                found.setdefault(name, Counter()).update(values)
        return {name: counted.most_common(100) for name, counted in found.items()}


def failing_of(evaluation: Evaluation) -> Failing:
    """Read all rows of the evaluation once."""
    found = Failing()
    rows = failing = 0
    documents: dict[str, list[int]] = {}
    words: dict[str, list[int]] = {}
    dimensions = [name for name in evaluation.by_dimension if name != SOURCE]
    for row in evaluation.all_rows():
        fails = bool(row.failing)
        rows += 1
        failing += fails
        for counts, names in ((documents, set(_documents(row.record))), (words, _words(row.record.question))):
            for name in names:
                count = counts.setdefault(name, [0, 0])
                count[0] += fails
                count[1] += 1
        if fails and len(found.answers) < MOST_LISTED:
            found.answers.append(_listed(row, dimensions))
    found.count = failing
    found.documents = _shares(documents)
    topics = {word: count for word, count in words.items() if count[1] <= max(_COMMON * rows, _LEAST_FAILING)}
    usual = failing / rows if rows else 0.0
    found.topics = [one for one in _shares(topics, most=None) if one.failing / one.answers > usual][:_SHOWN]
    topical = {one.name for one in found.topics}
    found.answers = [
        answer._replace(groups={**answer.groups, "word of the question": sorted(_words(answer.question) & topical)})
        for answer in found.answers
    ]
    return found


def _listed(row: EvaluatedRow, dimensions: Sequence[str]) -> ListedAnswer:
    record = row.record
    worst = min(row.failing.values(), key=lambda score: score.value)
    groups: dict[str, Sequence[str]] = {
        "metric": list(row.failing),
        **{name: [str(record.metadata[name])] for name in dimensions if name in record.metadata},
        "document": list(dict.fromkeys(_documents(record))),
        "cause": [worst.cause.replace("_", " ")] if worst.cause else [],
        "judge": [worst.judge] if worst.judge else [],
    }
    return ListedAnswer(
        row=row.row,
        question=(record.question or "")[:_TEXT],
        response=(record.response or "")[:_TEXT],
        scores={name: score.value for name, score in row.failing.items()},
        finding=(worst.explanation or "")[:_FINDING],
        groups=groups,
    )


def _documents(record: RagRecord) -> Iterator[str]:
    for context in record.contexts or ():
        yield (source_of(context) or context.id or " ".join(context.text.split())[:60])[:120]


def _words(question: str | None) -> set[str]:
    return {word.lower() for word in _WORD.findall(question or "")} - _ASKING


def _shares(counts: Mapping[str, Sequence[int]], *, most: int | None = _SHOWN) -> list[Share]:
    found = [Share(name, failing, answers) for name, (failing, answers) in counts.items() if failing >= _LEAST_FAILING]
    return sorted(found, key=lambda one: (-one.failing, -one.failing / one.answers, one.name))[:most]
