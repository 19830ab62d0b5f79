"""How well the contexts support the sentences of a response, and the response as a whole.

The weights are round numbers; only the map to a probability is fitted. A sentence gains by content words that are close together in
one context. It loses by numbers, names and runs of words that no context holds, and most by a finding. Both the mean of the sentences
and the worst one count for the response.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from ragspan.judges.screen.claims import Claim, Finding, Response
from ragspan.judges.screen.contexts import Index
from ragspan.judges.screen.findings import FINDERS, find_yes_beside_no
from ragspan.judges.screen.numbers import may_be_derived
from ragspan.text.keys import content_of, is_number
from ragspan.text.languages import Language
from ragspan.text.refusals import refuses
from ragspan.text.sentences import Sentence
from ragspan.turns import give_turn, with_turns

DERIVED = "a number may follow from others"
DECLINES = "it says that the contexts hold no answer"
ASKED = "most of it stands in the question alone"
UNRELATED = "the contexts have hardly a word of the question"

_SEARCHED = 0.1  # what a sentence of a short response gains in which nothing is found: its other words are paraphrase
_STRUCTURED = 0.3
"""What one gains beside paths and values, with which sentences share fewer words and almost no runs of three."""
_FOUND, _BELOW = 0.1, 0.12
"""The highest score of a sentence with a finding, and how far below the middle a response with one is at least."""
_HARDLY = 0.2  # the share of the question's words below which contexts are about something else
_SLOPE = 5.3  # fitted with `Language.middle` by `benchmarks/agreement.py`
EMPTY = 0.07  # the score of a sentence of which nothing is there


class Grade(NamedTuple):
    """What the contexts hold of one sentence."""

    sentence: str
    content: frozenset[str] = frozenset()  # its content words
    score: float = EMPTY
    """1 for a sentence that a context holds word for word, below 0 for one of which nothing is there."""
    window: float = 0.0  # share of its content words in the best three consecutive sentences of one context, 0..1
    context: int | None = None  # index of the context with these sentences; None when no context holds any of the words
    findings: tuple[Finding, ...] = ()  # where the sentence says otherwise than the contexts
    declines_rightly: bool = False
    """It says that the contexts do not hold the answer, and they are about something else."""
    unsure: str | None = None  # why words do not show whether it is supported; None where they do


def answer_score(grades: Sequence[Grade], language: Language) -> float:
    """The score of a response from those of its sentences, at least one.

    The worst sentence counts beside the mean: one invention spoils a response that is otherwise copied.
    """
    scores = [grade.score for grade in grades]
    score = 0.6 * math.fsum(scores) / len(scores) + 0.4 * min(scores)
    return min(score, language.middle - _BELOW) if any(grade.findings for grade in grades) else score


def probability(score: float, language: Language) -> float:
    """The score of a sentence or a response as the probability that people call it supported, 0..1.

    It changes no ranking. Half means as likely supported as not, where both are equally frequent.
    """
    return 1 / (1 + math.exp(_SLOPE * (language.middle - score)))


def grade(sentence: Sentence, response: Response, *, affirms: bool = False) -> Grade:
    """What the contexts hold of a claim, which follows a yes if `affirms`."""
    give_turn()
    index, keys, language = response.index, sentence.keys, response.language
    declines = refuses(sentence.text, language)
    content = content_of(keys)
    if declines and is_unrelated(response.asked, index):
        return Grade(sentence.text, content, score=1.0, declines_rightly=True)
    said = [key for key in keys if key in content]
    place = None if declines else index.verbatim(sentence, said, language)
    if place is not None:
        return Grade(sentence.text, content, score=1.0, window=1.0, context=index.context_at(place))
    if not said:
        return Grade(sentence=sentence.text)
    claim = Claim(sentence, content, response)
    together, context = index.best_window(said)
    if not together and claim.content <= language.neutral_keys:  # "The text."
        return Grade(sentence.text, content)
    # Each part of an enumeration may rest on another place.
    ends = [at for at, mark in sentence.pauses.items() if mark in {",", ";"}]
    parts = [content_of(keys[start:end]) for start, end in pairwise([0, *ends, len(keys)])]
    by_parts = sum(index.best_window(part)[0] for part in parts) if ends and min(map(len, parts)) > 1 else 0
    held = float(max(together, by_parts))
    absent = [at for at in claim.missing if keys[at] in claim.absent]
    numbers = [keys[at] for at in absent if is_number(keys[at]) and keys[at] not in claim.restated]
    capitals = [at for at in absent if at and claim.words[at][0].isupper() and not is_number(keys[at])]
    names = 0 if language.capitalises_nouns else len(capitals)
    unsure = DECLINES if declines else DERIVED if may_be_derived(claim, numbers) else None
    finders = FINDERS.values() if unsure is None else () if declines else [FINDERS["equation"], FINDERS["flag"]]
    findings = tuple(finding for find in with_turns(finders) if (finding := find(claim)) is not None)
    if affirms and finders and not findings and (beside := find_yes_beside_no(claim)) is not None:
        findings = (beside,)
    # A word that no context holds counts if it is neutral, and half if it is in the question.
    missing = [keys[at] for at in claim.missing]
    is_own = 2 * (held + sum(key in claim.restated for key in missing)) >= len(said)
    for key in missing:
        held += 1.0 if key in language.neutral_keys or key in claim.restated else 0.5 * (key in response.asked)
    unsure = unsure or (ASKED if not is_own and 2 * held >= len(said) and response.asked & {*missing} else None)
    gaps = groupby(said if absent else (), claim.absent.__contains__)
    gap = max((len(list(run)) for is_absent, run in gaps if is_absent), default=0)
    window = held / len(said)
    score = EMPTY + 0.85 * window - 0.25 * min(2, len(numbers)) - 0.1 * min(3, names) - 0.08 * min(4, gap)
    score += _SEARCHED * (response.lone and response.is_english and not numbers and not names)
    score += _STRUCTURED * (context is not None and index.contexts[context].structured)
    return Grade(
        sentence=sentence.text,
        content=content,
        score=min(score - 0.5, _FOUND) if findings else min(1.0, score),
        window=window,
        context=context,
        findings=findings,
        unsure=None if findings else unsure,
    )


def is_unrelated(question: frozenset[str], index: Index) -> bool:
    """Whether the contexts have hardly a word of the question."""
    return bool(question) and sum(index[word] > 0 for word in question) < _HARDLY * len(question)
