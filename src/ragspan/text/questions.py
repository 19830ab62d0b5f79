"""Tells a sentence that only restates a question from one that answers it."""

from __future__ import annotations

import re
from functools import lru_cache

from ragspan.text.keys import is_content, is_negation
from ragspan.text.languages import ENGLISH, guess
from ragspan.text.sentences import places_of

_LONGEST_REPORT = 100
"""Characters that a claim may have beside the question's: "You asked me about"."""
_MOST = 4_000
"""Characters of a question that are looked at."""
_ASKS = re.compile(
    r"\W{0,3}(?:and |so |but |then )?(?:what|which|who|whom|whose|when|where|why|how|was|wer|wen|wem|wann|wo|warum|wieso|"
    r"welche[rsmn]?|wie|quel(?:le)?s?|qui|quand|o\u00f9|pourquoi|comment|combien|qu\u00e9|qui\u00e9n(?:es)?|cu\u00e1l(?:es)?|"
    r"cu\u00e1ndo|d\u00f3nde|c\u00f3mo|cu\u00e1nt[oa]s?|che|chi|quale|quando|dove|come|perch\u00e9|quant[oiae]|que|quem|qual|onde|"
    r"wat|welke|wanneer|waar|waarom|hoe)\b",
    re.IGNORECASE,
)
"""Questions with these words do not hold their answer; "Is the fee 49 euros?" may."""
_REPORTS = re.compile(
    r"\W{0,3}(?:you|the user|they)(?:'re| are| were|'d| would| have|'ve)?(?: just)? "
    r"(?:ask(?:ed|s|ing)?|want(?:ed|s)?(?: me)? to know|wonder(?:ed|s|ing)?|like to know)\b(?: me)?(?: about| for| whether)?"
    r"|\W{0,3}(?:your|the|the user's) question (?:is|was)\b",
    re.IGNORECASE,
)


def restates(claim: str, question: str) -> bool:
    """Whether a claim says no more than a question: its words stand there in one piece, which is most of the question.

    "You asked how high the tower is." restates "How high is the tower?" What the user states, and what a question puts up for
    a yes or no, is not a restatement in a claim: there the claim takes a side.
    """
    if len(claim) > len(question) + _LONGEST_REPORT or not (asked := _asked(question[:_MOST])):
        return False
    language = guess(question, enough=1) or ENGLISH
    reported = _REPORTS.sub("", claim, count=1)
    said = list(filter(is_content, language.keys(reported)))
    if len(said) < (2 if reported == claim else 1) or any(map(is_negation, language.keys(claim))):
        return False
    return any(
        any(words[at : at + len(said)] == said for at in range(len(words) - len(said) + 1))
        for words in asked
        if 2 * len(said) >= len(words)
    )


@lru_cache(maxsize=16)  # for each claim of a response
def _asked(question: str) -> list[list[str]]:
    """The content words of each sentence of a question that does not hold its answer."""
    language = guess(question, enough=1) or ENGLISH
    asking = (question[start:end] for start, end in places_of(question) if _ASKS.match(question, start))
    return [list(filter(is_content, language.keys(sentence))) for sentence in asking]
