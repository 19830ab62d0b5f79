"""The judge's findings in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from ragspan.judges.overlap.completeness import Coverage
from ragspan.judges.overlap.grounding import Grade

_MOST_WORDS = 8
_LONGEST_QUOTE = 160


def explain_answer(grades: Sequence[Grade], *, grounded: bool) -> str:
    """Why a response with these sentences passes or not: its worst sentence, and what it lacks."""
    if not grades:
        return "the response has no content that a context could hold"
    worst = min(grades, key=lambda grade: grade.score)
    if not grounded:
        return f"{explain_sentence(worst)}; in {quoted(worst.sentence)}"
    return (
        f"{worst.compared} were compared, and no contradiction was found; "
        f"the weakest sentence is {quoted(worst.sentence)}: {_held(worst)}"
    )


def explain_sentence(grade: Grade) -> str:
    """What the contexts say otherwise than a sentence, what they lack of it, and what they hold."""
    if grade.contradictions:
        return "; ".join(map(str, grade.contradictions))
    found = _held(grade)
    lacks = grade.conflicts or grade.numbers or grade.names or grade.words
    return found if lacks else f"{grade.compared} were compared; {found}"


def _held(grade: Grade) -> str:
    lacks = [
        f"{what}: {listed(items)}"
        for what, items in (
            ("the context says otherwise about", grade.conflicts),
            ("numbers not in the context", grade.numbers),
            ("names not in the context", grade.names),
            ("words not in the context", grade.words),
        )
        if items
    ]
    if lacks:
        return "; ".join(lacks)
    if grade.context is None:
        return "its words are too general to be looked for"
    return f"{grade.window:.0%} of its content words stand close together in a context"


def explain_coverage(coverage: Coverage) -> str:
    if coverage.missing:
        return f"lacks {listed(coverage.missing)} of the context's main words"
    return "the response has all main words of the context" if coverage.share else "the context has no content"


def listed(words: Iterable[str]) -> str:
    """The first few of the words, each once."""
    distinct = iter(dict.fromkeys(words))
    shown = ", ".join(islice(distinct, _MOST_WORDS))
    return f"{shown}, ..." if next(distinct, None) is not None else shown


def quoted(sentence: str) -> str:
    text = sentence if len(sentence) <= _LONGEST_QUOTE else f"{sentence[:_LONGEST_QUOTE]}..."
    return f'"{text}"'
