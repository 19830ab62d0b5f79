"""How well the contexts support the sentences of a response, and the response as a whole.

The weights are round numbers; only the map to a probability is fitted. A sentence gains by content words that are close
together in one context and by runs of three words in the same order. It loses by numbers, names and runs of words that no
context holds, and most by a finding. Both the mean of the sentences and the worst one count for the response.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from ragspan.judges.screen.claims import Claim, Finding, Response
from ragspan.judges.screen.contexts import Index
from ragspan.judges.screen.findings import ALWAYS, FINDERS, find_yes_beside_no
from ragspan.judges.screen.numbers import may_be_derived
from ragspan.text.keys import content_of, is_number
from ragspan.text.languages import ENGLISH, Language
from ragspan.text.refusals import refuses
from ragspan.text.sentences import Sentence
from ragspan.text.turns import turn

DERIVED = "a number may follow from others"
DECLINES = "it says that the contexts hold no answer"
UNRELATED = "the contexts have hardly a word of the question"

_SEARCHED = 0.1
"""What a sentence of a short response gains in which nothing is found: its other words are paraphrase."""
_STRUCTURED = 0.3
"""What one gains beside paths and values, with which sentences share fewer words and almost no runs of three."""
_REFUSED = 0.48
"""The least score of a sentence that says that the contexts hold no answer, if they hold little of the question."""
_FOUND, _BELOW = 0.1, 0.12
"""The highest score of a sentence with a finding, and how far below the middle a response with one is at least."""
_MORE_TO_ERR, _USUAL = 0.03, 3
"""What a response loses for the logarithm of its sentences, beyond the usual number."""
_HARDLY, _ANSWERED = 0.2, 0.75
"""The share of the question's words below which contexts are about something else, and from which close together they may answer."""
_SLOPE = 5.3
"""Fitted with `Language.middle` by `benchmarks/agreement.py`."""
_ROOT = 4
"""Letters at the beginning of a word that inflection mostly keeps."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Grade:
    """What the contexts hold of one sentence."""

    sentence: str
    score: float = 0.0
    """1 for a sentence that a context holds word for word, below 0 for one of which nothing is there."""
    window: float = 0.0
    """Share of its content words in the best three consecutive sentences of one context, 0..1."""
    context: int | None = None
    """Index of the context with these sentences; None when no context holds any of the words."""
    findings: tuple[Finding, ...] = ()
    """Where the sentence says otherwise than the contexts."""
    declines_rightly: bool = False
    """It says that the contexts do not hold the answer, and they are about something else."""
    unsure: str | None = None
    """Why words do not show whether it is supported; None where they do."""


def declined(sentence: str) -> Grade:
    """Of a sentence that rightly says that there is no answer."""
    return Grade(sentence=sentence, score=1.0, declines_rightly=True)


def answer_score(grades: Sequence[Grade], language: Language = ENGLISH) -> float:
    """The score of a response from those of its sentences, at least one.

    The worst sentence counts beside the mean: one invention spoils a response that is otherwise copied. So does the number of
    sentences: the more a response says, the more of it can be wrong.
    """
    scores = [grade.score for grade in grades]
    score = 0.6 * math.fsum(scores) / len(scores) + 0.4 * min(scores) - _MORE_TO_ERR * math.log(len(scores) / _USUAL)
    return min(score, language.middle - _BELOW) if any(grade.findings for grade in grades) else score


def probability(score: float, language: Language = ENGLISH) -> float:
    """The score of a sentence or a response as the probability that people call it supported, 0..1.

    It changes no ranking. Half means as likely supported as not, where both are equally frequent.
    """
    return 1 / (1 + math.exp(_SLOPE * (language.middle - score)))


def grade(sentence: Sentence, response: Response, *, affirms: bool = False) -> Grade:
    """What the contexts hold of a claim, which follows a yes if `affirms`."""
    turn()
    index = response.index
    declines = refuses(sentence.text, response.language)
    if declines and is_unrelated(response.asked, index):
        return declined(sentence.text)
    place = index.verbatim(sentence.keys)
    if place is not None and not declines:
        response.before = sentence.keys
        return Grade(sentence=sentence.text, score=1.0, window=1.0, context=place.context)
    claim = Claim(sentence, response)
    content = [at for at, key in enumerate(claim.keys) if key in claim.content]
    if not content:
        return Grade(sentence=sentence.text, score=score_of())
    held, context = index.best_window([claim.keys[at] for at in content])
    held = max(held, _held_by_parts(claim))
    absent = [at for at in claim.missing if claim.keys[at] in claim.absent]
    numbers = [claim.keys[at] for at in absent if is_number(claim.keys[at]) and claim.keys[at] not in claim.restated]
    unsure = DECLINES if declines else DERIVED if may_be_derived(claim, numbers) else None
    findings = () if declines else _findings(claim, unsure, affirms=affirms)
    response.before = claim.keys
    window = (held + sum(_credit(claim, claim.keys[at]) for at in claim.missing)) / len(content)
    names = sum(_is_name(claim, at) for at in absent)
    score = score_of(
        window, index.covered(claim.keys) / len(claim.keys), len(numbers), names, _longest_gap(content, absent)
    )
    searched = response.lone and claim.is_english and not numbers and not names
    score += _SEARCHED * searched + _STRUCTURED * (context is not None and index.contexts[context].structured)
    if declines and not _is_answered(response):
        score = max(score, _REFUSED)
    return Grade(
        sentence=sentence.text,
        score=min(score - 0.5, _FOUND) if findings else min(1.0, score),
        window=window,
        context=context,
        findings=findings,
        unsure=None if findings else unsure,
    )


def score_of(window: float = 0.0, runs: float = 0.0, numbers: int = 0, names: int = 0, gap: int = 0) -> float:
    """The score of a sentence.

    Args:
        window: the share of its content words that stand close together.
        runs: the share of its words in a run of three that a context has as well.
        numbers: how many of its numbers no context holds.
        names: how many of its capitalised words but the first no context holds.
        gap: the most content words in a row that no context holds.
    """
    return 0.07 + 0.65 * window + 0.35 * runs - 0.25 * min(2, numbers) - 0.1 * min(3, names) - 0.08 * min(4, gap)


def _findings(claim: Claim, unsure: str | None, *, affirms: bool) -> tuple[Finding, ...]:
    found: list[Finding] = []
    for name, find in FINDERS.items():
        turn()
        if (unsure is None or name in ALWAYS) and (one := find(claim)) is not None:
            found.append(one)
    if affirms and not found and (one := find_yes_beside_no(claim)) is not None:
        found.append(one)
    return tuple(found)


def _held_by_parts(claim: Claim) -> int:
    """How many content words the contexts hold, where each part of an enumeration may rest on another place."""
    ends = [at for at, mark in claim.sentence.pauses.items() if mark in {",", ";"}]
    if not ends:
        return 0
    pieces = (claim.keys[start:end] for start, end in pairwise([0, *ends, len(claim.keys)]))
    parts = [content_of(piece) for piece in pieces]
    return sum(claim.index.best_window(part)[0] for part in parts) if min(map(len, parts)) > 1 else 0


def _is_name(claim: Claim, at: int) -> bool:
    is_capital = at > 0 and claim.words[at][0].isupper() and not claim.response.language.capitalises_nouns
    return is_capital and not is_number(claim.keys[at])


def _credit(claim: Claim, word: str) -> float:
    """What a word counts that no context holds: 1 if it is neutral or restated, half if it or its root is in question or contexts."""
    language, response = claim.response.language, claim.response
    if word in language.neutral_keys or word in claim.restated:
        return 1.0
    # The stemmer of English undoes most inflection.
    is_rooted = language.code != "en" and word[:_ROOT] in response.roots
    return 0.5 if word in response.question or is_rooted else 0.0


def _is_answered(response: Response) -> bool:
    """Whether contexts hold most of the question's words close together."""
    asked = response.asked
    return bool(asked) and response.index.best_window(asked)[0] >= _ANSWERED * len(asked)


def _longest_gap(places: Sequence[int], absent: Sequence[int]) -> int:
    """The most places in a row that are absent."""
    runs = groupby(places, frozenset(absent).__contains__) if absent else ()
    return max((len(list(run)) for is_absent, run in runs if is_absent), default=0)


def is_unrelated(question: frozenset[str], index: Index) -> bool:
    """Whether the contexts have hardly a word of the question."""
    return bool(question) and sum(index[word] > 0 for word in question) < _HARDLY * len(question)
