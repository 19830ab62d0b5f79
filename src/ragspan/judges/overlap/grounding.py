"""How well the contexts cover the sentences of an answer, and the answer as a whole.

The weights are round numbers, not fitted ones; only the map to a probability is fitted. A sentence gains by content words
that are close together in one context and by runs of three words in the same order. It loses by numbers, names and runs of
words that no context holds, and most by saying the opposite of a structured value. A response is as good as its sentences
are on average and as its worst one is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, groupby

from ragspan.judges.overlap.alignment import Alignment
from ragspan.judges.overlap.claims import Claim
from ragspan.judges.overlap.conflicts import find_conflicts, read_topics
from ragspan.judges.overlap.contexts import Context
from ragspan.judges.overlap.contradictions.comparing import Comparison
from ragspan.judges.overlap.contradictions.elsewhere import find_elsewhere
from ragspan.judges.overlap.contradictions.finding import Contradiction
from ragspan.judges.overlap.contradictions.tables import english
from ragspan.judges.overlap.languages import ENGLISH, Language
from ragspan.judges.overlap.refusals import refuses
from ragspan.judges.overlap.text import content_of, is_content, is_number

_WITHOUT_DENIALS, _WITH_DENIALS = "words, numbers and names", "words, numbers, names and denials"


@dataclass(frozen=True, kw_only=True, slots=True)
class Grade:
    """What the contexts hold of one sentence."""

    sentence: str
    window: float = 0.0
    """Share of its content words in the best three consecutive sentences of one context, 0..1."""
    context: int | None = None
    """Index of the context with these sentences; None when no context holds any of the words."""
    structured: bool = False
    """That context is JSON."""
    trigrams: float = 0.0
    """Share of its words inside a run of three that a context has as well, 0..1."""
    numbers: tuple[str, ...] = ()
    """Numbers, dates and times that no context holds."""
    names: tuple[str, ...] = ()
    """Capitalised words, the first of the sentence aside, that no context holds."""
    words: tuple[str, ...] = ()
    """Other content words that no context holds."""
    longest_gap: int = 0
    """Most content words in a row that no context holds."""
    conflicts: tuple[str, ...] = ()
    """Structured values of which the sentence says the opposite."""
    refuses: bool = False
    """It says that the contexts do not hold the answer, and they hold little of the question."""
    contradictions: tuple[Contradiction, ...] = ()
    """Where the sentence says otherwise than the context sentences that it rests on."""
    compared: str = _WITHOUT_DENIALS
    """What was looked at, for people."""

    @property
    def score(self) -> float:
        """1 for a sentence that a context holds word for word, below 0 for one of which nothing is there."""
        score = (
            0.07
            + 0.65 * self.window
            + 0.35 * self.trigrams
            - 0.25 * min(2, len(self.numbers))
            - 0.1 * min(3, len(self.names))
            - 0.08 * min(4, self.longest_gap)
        )
        if self.contradictions:
            return min(score - 0.5, _CONTRADICTED)
        if self.conflicts:
            return score - 0.5
        if self.refuses:
            score = max(score, _REFUSED)
        # Paths and values share fewer words and almost no trigrams with what people make of them than prose does.
        return min(1.0, score + 0.3 * self.structured)


_FEW_CLAIMS = 2
"""In responses of so few sentences everything is compared; in longer ones only what errs least."""
_REFUSED = 0.48
"""What a sentence scores at least that says that the contexts hold no answer, where they hold little of the question."""
_ANSWERED = 0.75
"""Contexts that hold so much of the question in one place are taken to answer it."""
_CONTRADICTED, _BELOW = 0.1, 0.12
"""The most that a sentence scores that says otherwise than the contexts; and how far below the middle a response is with one."""
_ROOT = 4
"""Letters at the beginning of a word that mostly stay as it is inflected."""


def answer_score(grades: Sequence[Grade], language: Language = ENGLISH) -> float:
    """The score of an answer from those of its sentences, of which there is at least one.

    The worst sentence counts beside the mean: one invention spoils an answer that is copied otherwise.
    """
    scores = [grade.score for grade in grades]
    score = 0.6 * math.fsum(scores) / len(scores) + 0.4 * min(scores)
    return min(score, language.middle - _BELOW) if any(grade.contradictions for grade in grades) else score


def probability(score: float, language: Language = ENGLISH) -> float:
    """The score of a sentence or an answer as a probability that people call it supported, 0..1.

    A monotone map, so that it changes no ranking. Half means as likely supported as not where both are equally frequent.
    """
    return 1 / (1 + math.exp(_SLOPE * (language.middle - score)))


# Logistic regression on the answers of one half of the sources of five sets of human judgements, sets and labels
# weighted equally, gives 4.9 and .46, which `benchmarks/agreement.py` repeats. The constants are those of the weights before,
# which differ by less than that may vary; the middle of other languages is `Language.middle`.
_SLOPE = 5.3


def grade_claims(
    claims: Sequence[Claim],
    contexts: Sequence[Context],
    alignment: Alignment,
    question: frozenset[str] = frozenset(),
    language: Language = ENGLISH,
) -> list[Grade]:
    """A grade for each claim.

    `alignment` is that of these claims with these contexts. `question` holds the keys of the question: to repeat its words
    is no invention.
    """
    grader = _Grader(contexts, alignment, question, language)
    if language.code == "en":
        grader.compare(lone=len(claims) <= _FEW_CLAIMS)
    grader.finds_elsewhere = language.code != "en" and len(claims) <= _FEW_CLAIMS
    return list(map(grader.grade, claims))


class _Grader:
    def __init__(
        self, contexts: Sequence[Context], alignment: Alignment, question: frozenset[str], language: Language
    ) -> None:
        self._contexts = contexts
        self._alignment = alignment
        self._language = language
        self._excused = language.neutral_keys | question
        self._question = question - language.neutral_keys
        self._asked = question
        self._topics = read_topics(contexts)
        self._comparison: Comparison | None = None
        self._known_roots: frozenset[str] | None = None
        self.finds_elsewhere = False
        """Other numbers and denials are looked for as well."""

    def compare(self, *, lone: bool) -> None:
        """Look for contradictions as well."""
        self._comparison = Comparison(self._contexts, self._alignment, self._asked, self._language, lone=lone)

    def grade(self, claim: Claim) -> Grade:
        words, sought = claim.words, claim.keys
        telling = content_of(sought)
        content = [at for at, word in enumerate(sought) if word in telling]
        if self._comparison is not None and not english().units.keys().isdisjoint(telling):
            content = [at for at in content if not self._is_unit(sought, at)]
        if not content:
            return Grade(sentence=claim.text)
        held, context = self._alignment.best_window([sought[at] for at in content])
        missing = [at for at in content if sought[at] not in self._alignment]
        absent = [at for at in missing if sought[at] not in self._excused]
        numbers = {at for at in absent if is_number(sought[at])}
        named = () if self._language.capitalises_nouns else absent
        names = {at for at in named if at and words[at][0].isupper()} - numbers
        return Grade(
            sentence=claim.text,
            window=(held + sum([self._credit(sought[at]) for at in missing])) / len(content),
            context=context,
            structured=context is not None and self._contexts[context].structured,
            trigrams=self._alignment.covered(sought) / len(sought),
            numbers=tuple([words[at] for at in absent if at in numbers]),
            names=tuple([words[at] for at in absent if at in names]),
            words=self._language.spelled([words[at] for at in absent if at not in numbers and at not in names]),
            longest_gap=_longest_run(content, frozenset(absent)) if absent else 0,
            conflicts=find_conflicts(claim.text, self._topics),
            refuses=refuses(claim.text, self._language) and not self._is_answered(),
            contradictions=self._contradictions(claim, absent),
            compared=_WITH_DENIALS if self._finds_denials else _WITHOUT_DENIALS,
        )

    @property
    def _finds_denials(self) -> bool:
        return self._comparison is not None or (self.finds_elsewhere and bool(self._language.negations))

    def _is_unit(self, keys: Sequence[str], at: int) -> bool:
        """True for the unit of a number, which is compared with the number, where no context has the word."""
        if keys[at] in self._alignment or keys[at] not in english().units:
            return False
        return any(is_number(key) for key in keys[max(0, at - 2) : at + 2] if key != keys[at])

    def _contradictions(self, claim: Claim, absent: Sequence[int]) -> tuple[Contradiction, ...]:
        if self.finds_elsewhere:
            return find_elsewhere(claim, self._contexts, self._alignment, self._language)
        if self._comparison is None:
            return ()
        return self._comparison.contradictions(claim, frozenset([claim.keys[at] for at in absent]))

    def _is_answered(self) -> bool:
        """Whether contexts hold most of the question's words close together."""
        asked = Claim(text="", words=(), keys=tuple(word for word in self._asked if is_content(word)))
        if not asked.keys:
            return False
        held, _ = Alignment([asked], self._contexts).best_window(asked.keys)
        return held >= _ANSWERED * len(asked.keys)

    def _credit(self, word: str) -> float:
        """What a word counts that no context holds: all for a neutral word, half for one of the question or its root."""
        if word not in self._excused:
            return 0.5 if word[:_ROOT] in self._roots else 0.0
        return 0.5 if word in self._question else 1.0

    @property
    def _roots(self) -> frozenset[str]:
        """How the content words of contexts begin, in languages that inflect more than stemmers undo."""
        if self._known_roots is None:
            words = chain.from_iterable(context.places for context in self._contexts)
            self._known_roots = frozenset(
                [word[:_ROOT] for word in words if len(word) >= _ROOT and word[0].isalpha()]
                if self._language.code != "en"
                else ()
            )
        return self._known_roots


def _longest_run(places: Sequence[int], absent: frozenset[int]) -> int:
    """The most places in a row that are absent."""
    return max((len(list(run)) for is_absent, run in groupby(places, absent.__contains__) if is_absent), default=0)
