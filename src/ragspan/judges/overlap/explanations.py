"""The judge's reasons in words: what a claim says, what a context says in its place, and which context that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from ragspan.judges.judge_protocols import Verdict
from ragspan.judges.overlap.analysis import Analysis
from ragspan.judges.overlap.context_reader import MAX_CONTEXTS
from ragspan.judges.overlap.contradictions import Contradiction
from ragspan.judges.overlap.coverage import Coverage
from ragspan.judges.overlap.grounding import Grade

UNRELATED = "the contexts have hardly a word of the question"
_MOST_WORDS = 8
_LONGEST_QUOTE = 160


def explain_answer(analysis: Analysis, *, grounded: bool) -> str:
    """Why a response passes or fails: its worst sentence, and what that lacks."""
    grades = analysis.grades
    if not grades:
        return "the response has no content that a context could hold"
    worst = min(grades, key=lambda grade: grade.score)
    if not grounded:
        return f"{_explain_unsupported(worst, analysis)}; in {_quoted(worst.sentence)}"
    return (
        f"{worst.compared} were compared, and no contradiction was found; "
        f"the weakest sentence is {_quoted(worst.sentence)}: {_closeness(worst, analysis)}"
    )


def explain_claim(grade: Grade, analysis: Analysis, verdict: Verdict) -> str:
    """Why a claim is supported, is not, or cannot be told.

    Of one that passes it says what was compared: nothing that is missing, which would say the opposite of the verdict.
    """
    if verdict == "unsure":
        return f"{grade.unsure}, which words do not show"
    return _explain_supported(grade, analysis) if verdict == "supported" else _explain_unsupported(grade, analysis)


def noted(explanation: str, analysis: Analysis, grades: Sequence[Grade]) -> str:
    """An explanation with what it rests on, where that is less than all words."""
    if analysis.note is None or analysis.declines_rightly:
        return explanation
    lacks_any = any(grade.numbers or grade.names for grade in grades)
    return f"{analysis.note}; {explanation if lacks_any else 'the contexts hold all of them'}"


def explain_coverage(coverage: Coverage) -> str:
    """Which of the contexts' main words a response lacks."""
    if coverage.missing:
        return f"lacks {_listed(coverage.missing)} of the context's main words"
    return "the response has all main words of the context" if coverage.share else "the context has no content"


def _explain_supported(grade: Grade, analysis: Analysis) -> str:
    return f"{grade.compared} were compared; {_closeness(grade, analysis)}"


def _explain_unsupported(grade: Grade, analysis: Analysis) -> str:
    """What of a sentence the contexts contradict, or what they lack, beside the sentence that comes closest."""
    if grade.contradictions:
        facing = _distinct(one for one in grade.contradictions if one.faces or not one.context)
        return "; ".join(explain_contradiction(one, analysis) for one in facing or grade.contradictions[:1])
    lacks = [
        f"{what}: {_listed(items)}"
        for what, items in (
            ("the context says otherwise about", grade.conflicts),
            ("numbers not in the context", grade.numbers),
            ("names not in the context", grade.names),
            ("words not in the context", grade.words),
        )
        if items
    ]
    if not lacks:
        return _explain_supported(grade, analysis)
    place = None if grade.conflicts else analysis.closest(grade.sentence)
    if place is not None:
        text = analysis.contexts[place.context].text_of(place.sentence)
        lacks.append(f"{_name_of(place.context, analysis)} comes closest with {_quoted(text)}")
    return "; ".join(lacks)


def explain_contradiction(found: Contradiction, analysis: Analysis) -> str:
    """Both sides beside each other where they are counterparts; else the claim's, and the sentence that it does not fit."""
    if not found.context:
        return f'says "{found.response}", and the context does not'
    if found.place is None:
        return f'says "{found.response}", which does not fit "{found.context}"'
    index, sentence = found.place
    name = _name_of(index, analysis)
    if found.faces:
        return f'says "{found.response}" where {name} says "{found.context}"'
    return f'says "{found.response}", which does not fit {name}: {_quoted(analysis.contexts[index].text_of(sentence))}'


def _distinct(found: Iterable[Contradiction]) -> list[Contradiction]:
    """Those whose words are not a part of another's."""
    kept: list[Contradiction] = []
    for one in found:
        if not any(f" {one.response} " in f" {other.response} " for other in kept):
            kept.append(one)
    return kept


def _closeness(grade: Grade, analysis: Analysis) -> str:
    if grade.declines_rightly:
        return UNRELATED
    if grade.context is None:
        return "its words are too general to be looked for"
    return f"{grade.window:.0%} of its content words stand close together in {_name_of(grade.context, analysis)}"


def _name_of(index: int, analysis: Analysis) -> str:
    """Which context it is, counted from 1."""
    among = len(analysis.record.contexts or ())
    if among > MAX_CONTEXTS:
        return "a context"
    if index >= analysis.documents:
        return "the background"
    return "the context" if among == 1 else f"context {index + 1}"


def _listed(words: Iterable[str]) -> str:
    """The first few of the words, each once."""
    distinct: Iterator[str] = iter(dict.fromkeys(words))
    shown = ", ".join(islice(distinct, _MOST_WORDS))
    return f"{shown}, ..." if next(distinct, None) is not None else shown


def _quoted(sentence: str) -> str:
    text = sentence if len(sentence) <= _LONGEST_QUOTE else f"{sentence[:_LONGEST_QUOTE]}..."
    return f'"{text}"'
