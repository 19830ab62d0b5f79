"""The screen's reasons in words: what a claim says, what a context says in its place, and which context that is."""

from __future__ import annotations

from ragspan.judges.judge_protocols import Verdict
from ragspan.judges.screen.analysis import Analysis
from ragspan.judges.screen.claims import Finding
from ragspan.judges.screen.grading import UNRELATED, Grade
from ragspan.turns import give_turn

_LONGEST_QUOTE = 160


def explain_answer(analysis: Analysis) -> str:
    """Why a response passes, fails or is left open, in whole sentences."""
    grades, verdict = analysis.grades, analysis.verdict
    if not grades:
        return "The response has no content that a context could hold."
    worst = min(grades, key=lambda grade: (not grade.findings, grade.score))
    if worst.findings or worst.declines_rightly:
        return explain_claim(worst, analysis, verdict).replace("It declines", "The response declines")
    if verdict == "unsupported":
        return f"The contexts hold hardly anything of the response. {explain_claim(worst, analysis, verdict)}"
    reason = next((grade.unsure for grade in grades if grade.unsure), None)
    if reason is not None:
        return f"Words do not show whether the response is right: {reason}."
    worded = "" if verdict == "supported" else ", but much is said in other words"
    return f"Nothing was found that the contexts contradict{worded}. {explain_claim(worst, analysis, verdict)}"


def explain_claim(grade: Grade, analysis: Analysis, verdict: Verdict) -> str:
    """Why a claim is supported, is not, or cannot be told."""
    give_turn()
    said = quoted(grade.sentence)
    if grade.findings:
        return _explain_finding(grade.findings[0], grade, analysis)
    if grade.declines_rightly:
        return f"It declines, and {UNRELATED}."
    if verdict == "unsupported":
        text = next(map(analysis.index.texts.__getitem__, analysis.index.closest(grade.content)), None)
        closest = f"what comes closest is {quoted(text)}" if text else "no context has a word of it"
        return f"The response says {said}, and {closest}."
    if grade.unsure is not None:
        return f"Words do not show whether it is right: {grade.unsure}."
    if grade.context is None:
        return f"No context has a main word of {said}."
    return f"Of {said} {grade.window:.0%} of the words stand close together in {_name_of(grade.context, analysis)}."


def _explain_finding(found: Finding, grade: Grade, analysis: Analysis) -> str:
    """A finding, with the response's words and the context's side by side."""
    ours = quoted(found.response)
    if found.kind == "flag":
        return f"The response says {quoted(grade.sentence)}, but the context has {quoted(found.context)}."
    if found.kind == "equation":
        return f"The response computes {ours}, which makes {found.context}."
    name = "the context" if found.place is None else _name_of(analysis.index.context_at(found.place), analysis)
    text = "" if found.place is None else quoted(analysis.index.texts[found.place])
    if found.context and found.context.lower() != found.response.lower():
        theirs = quoted(found.context)
        if text and theirs != text:
            ours = f"{ours} in {quoted(grade.sentence)}" if found.response in grade.sentence else quoted(grade.sentence)
            # Amounts are compared in one form, and quoted in theirs.
            theirs = f"{theirs} in {text}" if found.context in text else text
        return f"The response says {ours}, but {name} says {theirs}."
    is_close = found.place is not None and len(grade.content.intersection(analysis.index.sentences[found.place])) > 1
    return f"The response says {ours}, which stands in no context.{is_close * f' What comes closest is in {name}: {text}.'}"


def _name_of(index: int, analysis: Analysis) -> str:
    """Which context it is, counted from 1."""
    if index >= analysis.documents:
        return "the background"
    return "the context" if len(analysis.record.contexts or ()) == 1 else f"context {index + 1}"


def quoted(text: str) -> str:
    """A text in quotation marks, on one line and not too long."""
    shown = " ".join(text.split())
    shown = shown if len(shown) <= _LONGEST_QUOTE else f"{shown[:_LONGEST_QUOTE].rsplit(' ', 1)[0]}..."
    return f'"{shown.rstrip(".")}"' if not shown.endswith("...") else f'"{shown}"'
