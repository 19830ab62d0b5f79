"""How well the contexts support the sentences of a response, and the response as a whole.

The weights are round numbers; only the map to a probability is fitted. A sentence gains by content words that are close
together in one context and by runs of three words in the same order. It loses by numbers, names and runs of words that no
context holds, and most by a finding. Both the mean of the sentences and the worst one count for the response.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from ragspan.judges.screen.contexts import Context, Place
from ragspan.judges.screen.denials import find_opposition
from ragspan.judges.screen.english import english
from ragspan.judges.screen.evidence import Aligned, Evidence
from ragspan.judges.screen.facts import SentenceFacts, compared, may_be_elsewhere, tells
from ragspan.judges.screen.finding import Finding
from ragspan.judges.screen.flags import find_conflicts, read_topics
from ragspan.judges.screen.numbers import (
    SUMMING,
    find_number_elsewhere,
    find_other_quantity,
    find_wrong_equation,
    has_equation,
    is_derived,
    is_exact,
    sentences_near,
)
from ragspan.judges.screen.other_languages import find_in_other_language
from ragspan.judges.screen.quantities import DATES, same
from ragspan.judges.screen.roles import find_exchange
from ragspan.text.keys import content_of, is_content, is_negation, is_number
from ragspan.text.languages import ENGLISH, Language
from ragspan.text.lazy import Lazy
from ragspan.text.refusals import refuses
from ragspan.text.sentences import Sentence
from ragspan.text.turns import turn

DERIVED = "a number may follow from others"
DECLINES = "it says that the contexts hold no answer"
UNRELATED = "the contexts have hardly a word of the question"

_FEW_CLAIMS = 2
"""Responses of so few sentences are compared with sentences that share less."""
_ENOUGH, _MOST, _NEARLY_ALL = 0.6, 0.75, 0.85
"""The share of a claim's words that a context sentence has to hold to be compared: in such a response, in a longer one, and there
for denials and opposites."""
_SEARCHED = 0.1
"""What a sentence of a short response gains in which nothing is found: its other words are paraphrase."""
_REFUSED = 0.48
"""The least score of a sentence that says that the contexts hold no answer, if they hold little of the question."""
_FOUND = 0.1
"""The highest score of a sentence with a finding."""
_BELOW = 0.12
"""How far below the middle a response with a finding is at least."""
_MORE_TO_ERR, _USUAL = 0.03, 3
"""What a response loses for the logarithm of its sentences, beyond the usual number."""
_HARDLY = 0.2
_SLOPE = 5.3
"""Fitted with `Language.middle` by `benchmarks/agreement.py`."""
_SENTENCES_NEAR, _FEW_WORDS, _LITTLE = 3, 3, 0.5
_ROOT = 4
"""Letters at the beginning of a word that inflection mostly keeps."""
_FEWEST = 3
"""Content words of a claim of a longer response that is compared."""
_STOPS = frozenset(",.;:!-")


@dataclass(frozen=True, kw_only=True, slots=True)
class Grade:
    """What the contexts hold of one sentence."""

    sentence: str
    window: float = 0.0
    """Share of its content words in the best three consecutive sentences of one context, 0..1."""
    context: int | None = None
    """Index of the context with these sentences; None when no context holds any of the words."""
    trigrams: float = 0.0
    """Share of its words in a run of three that a context has as well, 0..1."""
    numbers: tuple[str, ...] = ()
    """Numbers, dates and times that no context holds."""
    names: tuple[str, ...] = ()
    """Capitalised words, but not the first of the sentence, that no context holds."""
    longest_gap: int = 0
    """Most content words in a row that no context holds."""
    findings: tuple[Finding, ...] = ()
    """Where the sentence says otherwise than the contexts."""
    declines_rightly: bool = False
    """It says that the contexts do not hold the answer, and they are about something else."""
    unsure: str | None = None
    """Why words do not show whether it is supported; None where they do."""
    bonus: float = 0.0
    least: float = -math.inf

    @property
    def score(self) -> float:
        """1 for a sentence that a context holds word for word, below 0 for one of which nothing is there."""
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
        if self.findings:
            return min(score - 0.5, _FOUND)
        return min(1.0, max(score + self.bonus, self.least))


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


class Grader:
    """Grades the claims of one response.

    Args:
        contexts: what the claims are compared with.
        evidence: what these claims share with these contexts.
        question: its keys: to repeat its words is not an invention.
        language: of the response and the contexts.
        lone: the response is a sentence or two.
    """

    def __init__(
        self,
        contexts: Sequence[Context],
        evidence: Evidence,
        question: frozenset[str],
        language: Language,
        *,
        lone: bool,
    ) -> None:
        self.contexts, self.evidence, self.question, self.language = contexts, evidence, question, language
        self.lone = lone
        self.asked = frozenset(filter(is_content, question))
        self.told = frozenset(filter(tells, map(compared, question)))
        """The words of the question that are compared where a claim has few."""
        self._excused = language.neutral_keys | question
        self._topics = read_topics(contexts)
        self._said: tuple[str, ...] = ()
        """The keys of the claim before, from which a number may follow."""

    def grade(self, claim: Sentence, *, affirms: bool = False) -> Grade:
        """What the contexts hold of a claim, which follows a yes if `affirms`."""
        turn()
        sought, evidence = claim.keys, self.evidence
        declines = refuses(claim.text, self.language)
        if declines and is_unrelated(self.asked, self.contexts):
            return Grade(sentence=claim.text, declines_rightly=True)
        telling = self.language.content_of(sought)
        content = [at for at, key in enumerate(sought) if key in telling]
        if not content:
            return Grade(sentence=claim.text)
        held, context = evidence.best_window([sought[at] for at in content])
        held = max(held, self._held_by_parts(claim))
        missing = [at for at in content if sought[at] not in evidence]
        absent = [at for at in missing if sought[at] not in self._excused]
        read = Claim(claim, self, frozenset([sought[at] for at in absent]))
        numbers = [at for at in absent if is_number(sought[at]) and sought[at] not in read.restated]
        names = [at for at in absent if self._is_name(claim, at)]
        credit = sum(sought[at] in read.restated or self._credit(sought[at]) for at in missing)
        unsure = DECLINES if declines else self._unsure(claim, telling, [sought[at] for at in numbers])
        self._said = sought
        findings: list[Finding] = []
        if not declines and not (not absent and evidence.has_sentence(sought)):
            for name, find in FINDERS.items():
                turn()
                if (unsure is None or name in _ALWAYS) and (one := find(read)) is not None:
                    findings.append(one)
            if affirms and not findings:
                findings = [one for one in [_find_yes_beside_no(read)] if one is not None]
        structured = context is not None and self.contexts[context].structured
        searched = self.lone and self.language.code == "en" and not numbers and not names
        return Grade(
            sentence=claim.text,
            window=(held + credit) / len(content),
            context=context,
            trigrams=evidence.covered(sought) / len(sought),
            numbers=tuple([claim.words[at] for at in numbers]),
            names=tuple([claim.words[at] for at in names]),
            longest_gap=_longest_run(content, frozenset(absent)) if absent else 0,
            findings=tuple(findings),
            unsure=None if findings else unsure,
            # Sentences about paths and values share fewer words and almost no trigrams with them.
            bonus=_SEARCHED * searched + 0.3 * structured,
            least=_REFUSED if declines and not self._is_answered() else -math.inf,
        )

    def _held_by_parts(self, claim: Sentence) -> int:
        """How many content words the contexts hold, where each part of an enumeration may rest on another place."""
        pieces = re.split(r"[,;]\s", claim.text) if "," in claim.text or ";" in claim.text else ()
        parts = [self.language.content_of(self.language.keys(piece)) for piece in pieces]
        if not parts or min(map(len, parts)) <= 1:
            return 0
        return sum(self.evidence.best_window(part)[0] for part in parts)

    def _is_name(self, claim: Sentence, at: int) -> bool:
        word = claim.words[at]
        return at > 0 and word[0].isupper() and not self.language.capitalises_nouns and not is_number(claim.keys[at])

    def _unsure(self, claim: Sentence, telling: frozenset[str], numbers: Sequence[str]) -> str | None:
        """Why words do not show whether a claim is supported; None where they do."""
        if has_equation(claim.text):
            return DERIVED
        if numbers:
            places = self.evidence.closest(telling.difference(numbers), _SENTENCES_NEAR)
            near = sentences_near(places, self.contexts)
            beside = (*(key for key in self.question if is_number(key)), *self._said)
            return DERIVED if is_derived(numbers, claim.keys, beside, near) else None
        return None

    def _is_answered(self) -> bool:
        """Whether contexts hold most of the question's words close together."""
        if not self.asked:
            return False
        asked = Sentence(text="", words=(), keys=tuple(self.asked))
        return Evidence([asked], self.contexts).best_window(asked.keys)[0] >= 0.75 * len(asked.keys)

    def _credit(self, word: str) -> float:
        """What a word counts that no context holds: 1 if it is neutral, half if it or its root is in the question or the contexts."""
        if word not in self._excused:
            # The stemmer of English undoes most inflection.
            return 0.5 if self.language.code != "en" and word[:_ROOT] in self.roots else 0.0
        return 0.5 if word in self.question and word not in self.language.neutral_keys else 1.0

    @Lazy
    def roots(self) -> frozenset[str]:
        """How the contexts' words begin."""
        words = (word for context in self.contexts for word in context.places)
        return frozenset([word[:_ROOT] for word in words if len(word) >= _ROOT and word[0].isalpha()])


class Claim:
    """A claim as the finders look at it."""

    def __init__(self, sentence: Sentence, grader: Grader, absent: frozenset[str]) -> None:
        self.sentence, self.grader, self.absent = sentence, grader, absent
        """`absent`: the keys of content words that neither contexts nor question hold."""
        self.is_english = grader.language.code == "en"

    @Lazy
    def facts(self) -> SentenceFacts:
        return SentenceFacts(self.sentence.text, self.grader.language)

    @Lazy
    def aligned(self) -> list[Aligned]:
        """The context sentences that it may rest on."""
        content = self.facts.content
        return self.grader.evidence.aligned(content if len(content) > 1 else content | self.grader.told, _LITTLE)

    @Lazy
    def numbers(self) -> frozenset[str]:
        """Those of the absent words."""
        return frozenset(filter(is_number, self.absent))

    @property
    def enough(self) -> float:
        return _ENOUGH if self.grader.lone else _MOST

    @Lazy
    def _may_rest(self) -> bool:
        """False where the contexts lack too many of its words; a quick test, before it is taken apart."""
        words, evidence = content_of(self.sentence.keys), self.grader.evidence
        missing = sum([word not in evidence and not is_number(word) for word in words - may_be_elsewhere()])
        return missing <= (1 - self.enough) * (len(words) + 1)

    @Lazy
    def is_compared(self) -> bool:
        """Whether a sentence of the contexts is near enough for its clauses and numbers to be compared."""
        if not self.is_english or self.sentence.text.endswith(":"):
            return False
        if not self._may_rest:
            return False
        if not self.grader.lone and len(self.facts.content) < _FEWEST:
            return False
        return bool(self.aligned) and self.aligned[0].share >= self.enough

    @Lazy
    def restated(self) -> frozenset[str]:
        """The absent numbers whose amount a context gives otherwise: "14 days" as "two weeks"."""
        numbers = frozenset(filter(is_number, self.absent))
        if not numbers or not self.is_english or not self._may_rest:
            return frozenset()
        one = "1" in numbers and any("one" in context.places for context in self.grader.contexts)
        sought = [ours for ours in self.facts.quantities if ours.raw in numbers and ours.kind not in DATES]
        held = [other for near in self.aligned for other in near.facts.quantities] if sought else []
        found = {ours.raw for ours in sought if any(same(ours, other) for other in held)}
        return frozenset(found | {"1"} if one else found)


# Findings


def _find_equation(claim: Claim) -> Finding | None:
    return find_wrong_equation(claim.sentence.text)


def _find_flag(claim: Claim) -> Finding | None:
    found = find_conflicts(claim.sentence.text, claim.grader._topics)  # noqa: SLF001
    return Finding(kind="flag", response=found[0].name, context=found[0].statement) if found else None


def _find_other_quantity(claim: Claim) -> Finding | None:
    if not claim.is_compared or (claim.numbers and not SUMMING.isdisjoint(claim.sentence.keys)):
        return None  # the number may follow from others
    grader = claim.grader
    question = grader.told if grader.lone else frozenset[str]()
    return find_other_quantity(claim.facts, claim.aligned, question, grader.evidence, claim.enough)


def _find_absent_number(claim: Claim) -> Finding | None:
    """A number of two digits or more that no context holds and that does not follow from others."""
    said = claim.sentence
    for at, key in enumerate(said.keys):
        if key in claim.absent and is_number(key) and key not in claim.restated:
            places = claim.grader.evidence.closest(filter(is_content, said.keys))
            rival = _rival_of(claim, key) if claim.is_english else None
            if rival is not None:
                return Finding(kind="number", response=rival[0], context=rival[1], place=rival[2])
            if not is_exact(said.words[at]):
                continue
            following = said.words[at + 1 : at + 2]
            with_unit = bool(following) and is_content(said.keys[at + 1])
            words = [said.words[at], *following] if with_unit else [said.words[at]]
            return Finding(kind="absent number", response=" ".join(words), place=places[0] if places else None)
    return None


def _rival_of(claim: Claim, key: str) -> tuple[str, str, Place] | None:
    """A quantity of the claim with this number, and one of its kind in the sentence that comes closest."""
    ours = next((one for one in claim.facts.quantities if one.raw == key and one.kind), None)
    for near in claim.aligned[:1] if ours else ():
        for other in near.facts.quantities:
            if ours and other.kind == ours.kind and not same(ours, other):
                return ours.text, other.text, near.place
    return None


def _find_number_elsewhere(claim: Claim) -> Finding | None:
    return find_number_elsewhere(claim.sentence, claim.grader.evidence, claim.grader.question)


def _find_opposition(claim: Claim) -> Finding | None:
    if not claim.is_compared:
        return None
    lone = claim.grader.lone
    question = claim.grader.told if lone else frozenset[str]()
    enough, fewest = (_ENOUGH, 1) if lone else (_NEARLY_ALL, 4)
    return find_opposition(claim.facts, claim.aligned, question, enough=enough, fewest=fewest)


def _find_exchange(claim: Claim) -> Finding | None:
    return find_exchange(claim.facts, claim.aligned) if claim.is_compared else None


def _find_name(claim: Claim) -> Finding | None:
    """A name of which no part stands in a context or the question, nor its initials."""
    said, grader = claim.sentence, claim.grader
    if grader.language.capitalises_nouns or not claim.absent:
        return None
    capital = [word[0].isupper() and is_content(key) for word, key in zip(said.words, said.keys, strict=True)]
    for is_name, run in groupby(range(len(capital)), capital.__getitem__):
        places = list(run)
        words = said.words[places[0] : places[-1] + 1]
        if not is_name or not places[-1] or not all(said.keys[place] in claim.absent for place in places):
            continue
        # What begins a sentence or follows a colon, a bracket or a mark of a list may be any word.
        if re.search(rf"(?<=[\w,] ){re.escape(words[0])}\b", said.text) and not _is_known(words, claim):
            nearest = grader.evidence.closest(filter(is_content, said.keys))
            return Finding(kind="name", response=" ".join(words), place=nearest[0] if nearest else None)
    return None


def _is_known(name: Sequence[str], claim: Claim) -> bool:
    """Whether contexts have a name's initials, or they or the claim words in a row with the initials that it is."""
    contexts = claim.grader.contexts
    if all(_is_common(word, claim.grader) for word in name):
        return True
    if len(name) > 1:
        initials = "".join(word[0] for word in name).lower()
        return any(initials in context.places for context in contexts)
    word = name[0].rstrip("s")
    if not word.isupper() or not 1 < len(word) <= _LONGEST_INITIALS:
        return False
    rows = (claim.sentence.keys, *(context.keys for context in contexts))
    return any(word.lower() in "".join(key[0] for key in row if is_content(key)) for row in rows)


def _is_common(word: str, grader: Grader) -> bool:
    """Whether a word with a capital is hardly a name that has to be there: "TV", "Monday", or "Korean" beside "Korea"."""
    if word.isupper() and len(word) <= _COMMON_INITIALS:
        return True
    known = grader.language.key(word)
    if known in english().weekdays or known in english().units:
        return True
    root = word[:_ROOT].lower()
    return any(key.startswith(root) for context in grader.contexts for key in context.places)


_COMMON_INITIALS, _LONGEST_INITIALS = 3, 6


def _find_in_other_language(claim: Claim) -> Finding | None:
    grader = claim.grader
    if claim.is_english or not grader.lone:
        return None
    return find_in_other_language(claim.sentence, grader.evidence, grader.language, grader.question)


def _find_yes_beside_no(claim: Claim) -> Finding | None:
    """After a yes, a context sentence about most of what the question and the claim are about that denies."""
    said, grader = claim.sentence, claim.grader
    if not grader.lone or any(map(is_negation, said.keys)):
        return None
    about = grader.asked | grader.language.content_of(said.keys)
    for place in grader.evidence.closest(about, 2):
        keys = grader.contexts[place.context].keys_of(place.sentence)
        content = grader.language.content_of(keys)
        denies = any(map(is_negation, keys)) and len(content & about) >= 0.5 * len(content)
        if denies and not grader.asked.isdisjoint(content):
            text = grader.contexts[place.context].text_of(place.sentence)
            return Finding(kind="negation", response=said.text, context=text, place=place)
    return None


FINDERS: Final[dict[str, Callable[[Claim], Finding | None]]] = {
    "equation": _find_equation,
    "flag": _find_flag,
    "other number": _find_other_quantity,
    "absent number": _find_absent_number,
    "number elsewhere": _find_number_elsewhere,
    "denial": _find_opposition,
    "exchange": _find_exchange,
    "name": _find_name,
    "other language": _find_in_other_language,
}
"""What is looked for in each claim, by the names under which `benchmarks/rules.py` switches it off."""
_ALWAYS = frozenset({"equation", "flag", "other number"})
"""Findings that count even where words do not show the rest."""


def is_unrelated(question: frozenset[str], contexts: Sequence[Context]) -> bool:
    """Whether the contexts have hardly a word of the question."""
    held = frozenset().union(*(context.held(question) for context in contexts))
    return bool(question) and len(held) < _HARDLY * len(question)


def _longest_run(places: Sequence[int], absent: frozenset[int]) -> int:
    """The most places in a row that are absent."""
    return max((len(list(run)) for is_absent, run in groupby(places, absent.__contains__) if is_absent), default=0)
