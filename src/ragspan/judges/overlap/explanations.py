"""The judge's findings in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from ragspan.judges.overlap.completeness import Coverage
from ragspan.judges.overlap.grounding import Grade

_MOST_WORDS = 8
_LONGEST_QUOTE = 160


def explain_answer(grades: Sequence[Grade], *, grounded: bool) -> str:
    """Why an answer with these sentences is grounded or not: its worst sentence, and what it lacks."""
    if not grades:
        return "the response has no content that passages could hold"
    worst = min(grades, key=lambda grade: grade.score)
    verdict = "the passages cover the response" if grounded else "the passages do not cover the response"
    return f"{verdict}; its weakest sentence is {quoted(worst.sentence)}: {explain_sentence(worst)}"


def explain_sentence(grade: Grade) -> str:
    """What the passages hold of a sentence, and what they lack."""
    lacks = [
        f"{what}: {listed(items)}"
        for what, items in (
            ("the passages say otherwise about", grade.conflicts),
            ("numbers not in the passages", grade.numbers),
            ("names not in the passages", grade.names),
            ("words not in the passages", grade.words),
        )
        if items
    ]
    if lacks:
        return "; ".join(lacks)
    if grade.context is None:
        return "its words are too general to be looked for"
    return f"{grade.window:.0%} of its content words stand close together in a passage"


def explain_coverage(coverage: Coverage) -> str:
    if coverage.missing:
        return f"main words of the passages that the response lacks: {listed(coverage.missing)}"
    return "the response has all main words of the passages" if coverage.share else "the passages have no content"


def listed(words: Iterable[str]) -> str:
    """The first few of the words, each once."""
    distinct = iter(dict.fromkeys(words))
    shown = ", ".join(islice(distinct, _MOST_WORDS))
    return f"{shown}, ..." if next(distinct, None) is not None else shown


def quoted(sentence: str) -> str:
    text = sentence if len(sentence) <= _LONGEST_QUOTE else f"{sentence[:_LONGEST_QUOTE]}..."
    return f'"{text}"'
