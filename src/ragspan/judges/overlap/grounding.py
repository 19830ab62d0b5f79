"""How well the contexts support the sentences of a response, and the response as a whole.

The weights are round numbers; only the map to a probability is fitted. A sentence gains by content words that are close
together in one context and by runs of three words in the same order. It loses by numbers, names and runs of words that no
context holds, and most by a contradiction. Both the mean of the sentences and the worst one count for the response.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, islice

from ragspan.judges.overlap.context_reader import Context
from ragspan.judges.overlap.contradictions import Contradiction
from ragspan.judges.overlap.contradictions.comparing import Comparison
from ragspan.judges.overlap.contradictions.counterparts import placed
from ragspan.judges.overlap.contradictions.exact import other_identifiers
from ragspan.judges.overlap.contradictions.flags import find_conflicts, read_topics
from ragspan.judges.overlap.contradictions.row_facts import RowFinding, find_in_rows
from ragspan.judges.overlap.contradictions.sentence_parts import is_denied
from ragspan.judges.overlap.derived import (
    AMBIGUOUS,
    DECLINES,
    DENIED_NEAR,
    DERIVED,
    ELSEWHERE,
    OPEN,
    SENTENCES_NEAR,
    SHORT,
    is_ambiguous_date,
    is_derived,
    is_exact,
    is_number_elsewhere,
    is_short_reply,
    is_unrelated,
    sentences_near,
)
from ragspan.judges.overlap.english import english
from ragspan.judges.overlap.shared_words import SharedWords
from ragspan.text.keys import is_content, is_number
from ragspan.text.languages import ENGLISH, Language
from ragspan.text.languages.writing import WITHOUT_SPACES_NAMES
from ragspan.text.lazy import Lazy
from ragspan.text.refusals import refuses
from ragspan.text.sentences import Sentence

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
    """That context is JSON, or a row of a table holds it."""
    trigrams: float = 0.0
    """Share of its words in a run of three that a context has as well, 0..1."""
    numbers: tuple[str, ...] = ()
    """Numbers, dates and times that no context holds."""
    names: tuple[str, ...] = ()
    """Capitalised words, but not the first of the sentence, and identifiers that no context holds."""
    is_elsewhere: bool = False
    """One of these names stands by itself, and is not a part of one that contexts have."""
    words: tuple[str, ...] = ()
    """Other content words that no context holds."""
    longest_gap: int = 0
    """Most content words in a row that no context holds."""
    conflicts: tuple[str, ...] = ()
    """Structured values of which the sentence says the opposite."""
    refuses: bool = False
    """It says that the contexts do not hold the answer, and they hold little of the question."""
    declines_rightly: bool = False
    """It says that the contexts do not hold the answer, and they are about something else."""
    unsure: str | None = None
    """Why words do not show whether it is supported; None where they do."""
    contradictions: tuple[Contradiction, ...] = ()
    """Where the sentence says otherwise than the contexts."""
    compared: str = _WITHOUT_DENIALS
    """What was compared, in words."""
    searched: bool = False
    """It was searched for all kinds of contradiction."""

    score: float = field(init=False, repr=False, compare=False)
    """1 for a sentence that a context holds word for word, below 0 for one of which nothing is there."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "score", self._score())

    def _score(self) -> float:
        if self.declines_rightly:
            return 1.0
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
        exact = any(map(is_exact, self.numbers)) or any(map(_is_identifier, self.names))
        if (exact or (self.searched and self.is_elsewhere)) and not self.unsure:
            score = min(score, _INVENTED)
        if self.searched and not self.numbers and not self.names:
            score += _SEARCHED
        if self.refuses:
            score = max(score, _REFUSED)
        # Sentences about paths and values share fewer words and almost no trigrams with them.
        return min(1.0, score + 0.3 * self.structured)


_FEW_CLAIMS = 2
"""Responses of so few sentences are searched for all contradictions; longer ones only for those that err least."""
_SHORT_ANSWER = 6
"""Responses of so few sentences are searched for words that have changed their parts."""
_SEARCHED = 0.1
"""What a sentence gains that was searched for all contradictions, if there is none: its other words are paraphrase."""
_REFUSED = 0.48
"""The least score of a sentence that says that the contexts hold no answer, if they hold little of the question."""
_ANSWERED = 0.75
"""Contexts that hold this share of the question in one place count as answering it."""
_CONTRADICTED, _BELOW = 0.1, 0.12
"""The highest score of a sentence with a contradiction; and how far below the middle a response with one is at least."""
_MORE_TO_ERR, _USUAL = 0.03, 3
"""What a response loses for the logarithm of its sentences, beyond the usual number."""
_FEWEST_PARTS = 2
_INVENTED = 0.4
"""The highest score of a sentence with an exact number that no context holds."""
_MOST_TABLES = 40
"""Tables of one record that claims are compared with."""
_ROOT = 4
"""Letters at the beginning of a word that inflection mostly keeps."""


def _is_identifier(name: str) -> bool:
    return any(map(str.isdigit, name))


def answer_score(grades: Sequence[Grade], language: Language = ENGLISH) -> float:
    """The score of a response from those of its sentences, at least one.

    The worst sentence counts beside the mean: one invention spoils a response that is otherwise copied. So does the number of
    sentences: the more a response says, the more of it can be wrong.
    """
    scores = [grade.score for grade in grades]
    score = 0.6 * math.fsum(scores) / len(scores) + 0.4 * min(scores) - _MORE_TO_ERR * math.log(len(scores) / _USUAL)
    return min(score, language.middle - _BELOW) if any(grade.contradictions for grade in grades) else score


def at_best_and_worst(grades: Sequence[Grade]) -> tuple[list[Grade], list[Grade]]:
    """The grades if all claims that may be right or wrong are right, and if all are wrong."""
    best = [
        replace(grade, numbers=(), words=(), longest_gap=0, window=1.0) if grade.unsure == DERIVED else grade
        for grade in grades
    ]
    worst = [
        replace(grade, unsure=None, contradictions=() if grade.unsure == DERIVED else (_ASSUMED,))
        if grade.unsure in OPEN
        else grade
        for grade in grades
    ]
    return best, worst


_ASSUMED = Contradiction(kind="assumed", response="", context="")


def probability(score: float, language: Language = ENGLISH) -> float:
    """The score of a sentence or a response as the probability that people call it supported, 0..1.

    It changes no ranking. Half means as likely supported as not, where both are equally frequent.
    """
    return 1 / (1 + math.exp(_SLOPE * (language.middle - score)))


# `benchmarks/agreement.py` fits slope and middle by logistic regression to one half of the sources of five sets of human
# judgements, with equal weights of sets and labels: 4.9 and .46. The constants are from earlier weights of the score; the
# difference is within the error of the fit. `Language.middle` has the middle of other languages.
_SLOPE = 5.3


def grade_claims(
    claims: Sequence[Sentence],
    contexts: Sequence[Context],
    shared: SharedWords,
    question: frozenset[str] = frozenset(),
    language: Language = ENGLISH,
    *,
    affirms: bool = False,
) -> list[Grade]:
    """A grade for each claim; the first one follows a yes if `affirms`.

    `shared` is what these claims share with these contexts. `question` holds the keys of the question: to repeat its words
    is not an invention.
    """
    lone, short = len(claims) <= _FEW_CLAIMS, len(claims) <= _SHORT_ANSWER
    grader = _Grader(contexts, shared, question, language, lone=lone, short=short)
    return [grader.grade(claim, affirms=affirms and not at) for at, claim in enumerate(claims)]


class _Grader:
    def __init__(
        self,
        contexts: Sequence[Context],
        shared: SharedWords,
        question: frozenset[str],
        language: Language,
        *,
        lone: bool,
        short: bool,
    ) -> None:
        self._contexts = contexts
        self._shared = shared
        self._language = language
        self._lone = lone
        self._short = short
        self._excused = language.neutral_keys | question
        self._question = question - language.neutral_keys
        self._asked = frozenset(filter(is_content, question))
        self._topics = read_topics(contexts)
        self._comparison = Comparison(contexts, shared, question, language, lone=lone, short=short)
        self._said: tuple[str, ...] = ()
        """The keys of the claim before, from which a number may follow."""
        self._rows = [*islice((rows for context in contexts for rows in context.rows), _MOST_TABLES)]

    def grade(self, claim: Sentence, *, affirms: bool = False) -> Grade:
        words, sought = claim.words, claim.keys
        declines = refuses(claim.text, self._language)
        if declines and is_unrelated(self._asked, self._contexts):
            return Grade(sentence=claim.text, declines_rightly=True)
        telling = self._language.content_of(sought)
        content = [at for at, word in enumerate(sought) if word in telling]
        if self._language.code == "en" and not english().units.keys().isdisjoint(telling):
            content = [at for at in content if not self._is_unit(sought, at)]
        if not content:
            return Grade(sentence=claim.text)
        held, context = self._shared.best_window([sought[at] for at in content])
        held = max(held, self._held_by_parts(claim, content))
        missing = [at for at in content if sought[at] not in self._shared]
        unknown = frozenset([sought[at] for at in missing]) - self._excused
        restated = self._comparison.restated(claim, unknown)
        unheld = unknown - restated
        absent = [at for at in missing if sought[at] in unheld]
        numbers = {at for at in absent if is_number(sought[at])}
        window = (held + sum([sought[at] in restated or self._credit(sought[at]) for at in missing])) / len(content)
        unsure = (
            DECLINES
            if declines
            else self._unsure(claim, telling, frozenset([sought[at] for at in numbers]), held / len(content))
        )
        self._said = sought
        named = () if self._language.capitalises_nouns else absent
        in_rows = self._in_rows(claim)
        names = {at for at in named if at and words[at][0].isupper()} - numbers
        contradictions = self._contradictions(claim, in_rows, unheld & telling, is_open=unsure is not None)
        if unsure is None and not contradictions and not in_rows.holds:
            unsure = self._open(claim, affirms=affirms)
        return Grade(
            sentence=claim.text,
            window=window,
            context=context,
            structured=in_rows.holds or (context is not None and self._contexts[context].structured),
            trigrams=self._shared.covered(sought) / len(sought),
            numbers=tuple([words[at] for at in absent if at in numbers]),
            names=(*[words[at] for at in absent if at in names], *self._other_identifiers(claim)),
            is_elsewhere=any(not self._is_part_of_name(claim, at) for at in names),
            words=self._language.spelled([words[at] for at in absent if at not in numbers and at not in names]),
            longest_gap=_longest_run(content, frozenset(absent)) if absent else 0,
            conflicts=find_conflicts(claim.text, self._topics),
            refuses=declines and not self._is_answered(),
            unsure=unsure,
            contradictions=contradictions,
            compared=_WITH_DENIALS if self._comparison.finds_denials else _WITHOUT_DENIALS,
            searched=self._lone and self._language.code == "en",
        )

    def _contradictions(
        self, claim: Sentence, in_rows: RowFinding, absent: frozenset[str], *, is_open: bool
    ) -> tuple[Contradiction, ...]:
        if in_rows.contradiction is not None:
            found: tuple[Contradiction, ...] = (in_rows.contradiction,)
        elif is_open or in_rows.holds:
            return ()
        else:
            found = self._comparison.contradictions(claim, absent)
        return tuple(placed(one, claim, self._contexts, self._shared, self._language) for one in found)

    def _is_part_of_name(self, claim: Sentence, at: int) -> bool:
        """Whether a name or number that contexts hold stands beside a name: "Southeast London", "HTTP 429"."""
        beside = (place for place in (at - 1, at + 1) if 0 <= place < len(claim.words))
        named = (place for place in beside if claim.words[place][0].isupper() or is_number(claim.keys[place]))
        return any(claim.keys[place] in self._shared for place in named)

    def _other_identifiers(self, claim: Sentence) -> tuple[str, ...]:
        return other_identifiers(claim, self._shared, self._question, self._language)

    def _in_rows(self, claim: Sentence) -> RowFinding:
        """What the rows of tables say of a claim; no contradiction where a sentence elsewhere says what it says."""
        if not self._rows:
            return RowFinding()
        words = self._language.tokens(claim.read) if claim.read else claim.words
        found = find_in_rows(words, list(map(self._language.key, words)), self._rows, self._language)
        if found.said and any(context.says_in_prose(found.said) for context in self._contexts):
            return RowFinding(holds=True)
        return found

    def _held_by_parts(self, claim: Sentence, content: Sequence[int]) -> int:
        """How many of a claim's content words the contexts hold, where each part of an enumeration may rest on another place."""
        text = claim.read or claim.text
        parts = _parts_of(claim, content) if "," in text or ";" in text else ()
        if len(parts) < _FEWEST_PARTS:
            return 0
        return sum(self._shared.best_window([claim.keys[at] for at in part])[0] for part in parts)

    def _unsure(self, claim: Sentence, telling: frozenset[str], absent: frozenset[str], held: float) -> str | None:
        """Why words do not show whether a claim is supported; None where they do."""
        if absent:
            if is_ambiguous_date(claim.text, absent, self._shared):
                return AMBIGUOUS
            places = self._shared.closest(telling - absent, SENTENCES_NEAR)
            near = sentences_near(places, self._contexts)
            beside, has_units = (*self._question, *self._said), self._language.script not in WITHOUT_SPACES_NAMES
            return DERIVED if is_derived(absent, claim.keys, beside, near, has_units=has_units) else None
        return SHORT if is_short_reply(claim, telling, self._asked, held, self._language) else None

    def _open(self, claim: Sentence, *, affirms: bool) -> str | None:
        """Why a claim without a contradiction may be right or wrong."""
        if self._short and is_number_elsewhere(claim, self._contexts, self._shared, self._question):
            return ELSEWHERE
        denied = affirms and self._lone and is_denied(claim, self._contexts, self._shared, self._asked, self._language)
        return DENIED_NEAR if denied else None

    def _is_unit(self, keys: Sequence[str], at: int) -> bool:
        """True for the unit of a number, if no context has the word: the unit is compared with the number."""
        if keys[at] in self._shared or keys[at] not in english().units:
            return False
        return any(is_number(key) for key in keys[max(0, at - 2) : at + 2] if key != keys[at])

    def _is_answered(self) -> bool:
        """Whether contexts hold most of the question's words close together."""
        if not self._asked:
            return False
        asked = Sentence(text="", words=(), keys=tuple(self._asked))
        held, _ = SharedWords([asked], self._contexts).best_window(asked.keys)
        return held >= _ANSWERED * len(asked.keys)

    def _credit(self, word: str) -> float:
        """What a word counts that no context holds: 1 if it is neutral, half if it or its root is in the question or the contexts."""
        if word not in self._excused:
            return 0.5 if word[:_ROOT] in self._roots else 0.0
        return 0.5 if word in self._question else 1.0

    @Lazy
    def _roots(self) -> frozenset[str]:
        """How the contexts' words begin; none for English, whose stemmer undoes most inflection."""
        if self._language.code == "en":
            return frozenset()
        words = chain.from_iterable(context.places for context in self._contexts)
        return frozenset([word[:_ROOT] for word in words if len(word) >= _ROOT and word[0].isalpha()])


def _parts_of(claim: Sentence, content: Sequence[int]) -> list[list[int]]:
    """The places of the content words of each part between commas; empty where a part is a single word."""
    text, at = claim.read or claim.text, 0
    parts: list[list[int]] = [[]]
    wanted = frozenset(content)
    for place, word in enumerate(claim.words):
        found = text.find(word, at)
        if found < 0:
            return []
        if "," in text[at:found] or ";" in text[at:found]:
            parts.append([])
        at = found + len(word)
        if place in wanted:
            parts[-1].append(place)
    return parts if all(len(part) > 1 for part in parts) else []


def _longest_run(places: Sequence[int], absent: frozenset[int]) -> int:
    """The most places in a row that are absent."""
    return max((len(list(run)) for is_absent, run in groupby(places, absent.__contains__) if is_absent), default=0)
