"""The claims of one record against its contexts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from ragspan.judges.overlap.context_reader import Context
from ragspan.judges.overlap.contradictions import Contradiction
from ragspan.judges.overlap.contradictions.alignment import Aligner
from ragspan.judges.overlap.contradictions.denials import find_opposition
from ragspan.judges.overlap.contradictions.exact import find_other_direction, find_other_number
from ragspan.judges.overlap.contradictions.facts import SentenceFacts, compared, may_be_elsewhere, tells
from ragspan.judges.overlap.contradictions.other_languages import find_in_other_language
from ragspan.judges.overlap.contradictions.quantifiers import find_other_quantifier
from ragspan.judges.overlap.contradictions.quantities import DATES, same
from ragspan.judges.overlap.contradictions.replacements import (
    find_addition,
    find_other_name,
    find_other_quantity,
    find_other_subject,
)
from ragspan.judges.overlap.contradictions.roles import find_other_argument, find_swap
from ragspan.judges.overlap.contradictions.sentence_parts import find_number_of_other_part, find_swapped_parts
from ragspan.judges.overlap.shared_words import SharedWords
from ragspan.text.keys import content_of, is_number
from ragspan.text.languages import Language
from ragspan.text.languages.writing import without_accents
from ragspan.text.lazy import Lazy
from ragspan.text.sentences import Sentence

_ENOUGH, _MOST = 0.6, 0.8
"""The share of a claim's words that a context sentence has to hold to be compared: in a lone response, and in a longer one."""
_FEW = 3
"""Content words of a claim of a longer response that is compared."""
_LONGEST = 100
_ROUNDING = 1e-6
_NO_WORDS: frozenset[str] = frozenset()
_CONCLUDING = frozenset({"because", "since", "therefore", "so"})
"""Words of a claim that follows from several facts, of which one may speak of others: "the jacket cannot be returned because it is on sale"."""
_LIMITING = frozenset({"least"})
"""Words of a limit that are content elsewhere, and that another limit does not have."""


class Comparison:
    """Finds where claims contradict the contexts of one record."""

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
        """`question` holds the keys of the question; `lone` is True for a response of a sentence or two, `short` for one of few."""
        self._contexts = contexts
        self._shared = shared
        self._language = language
        self._lone = lone
        self._asked = question
        self._short = short

    @Lazy
    def _aligner(self) -> Aligner:
        """For English alone."""
        return Aligner(self._contexts, self._shared)

    @Lazy
    def _question(self) -> frozenset[str]:
        """The words of the question that are compared."""
        words = filter(tells, map(compared, self._asked))
        return frozenset(word for word in words if word in self._aligner or word == "include")

    @property
    def finds_denials(self) -> bool:
        """Whether denials are compared."""
        return self._language.code == "en" or (self._lone and bool(self._language.negations))

    def restated(self, claim: Sentence, absent: frozenset[str]) -> frozenset[str]:
        """The absent numbers whose amount a context gives otherwise: "14 days" as "two weeks", "1 tablet" as "one tablet"."""
        if self._language.code != "en":
            return self._with_other_accents(claim)
        if not any(map(is_number, absent)):
            return _NO_WORDS
        has_one = "1" in absent and any("one" in context.places for context in self._contexts)
        one = frozenset({"1"}) if has_one else _NO_WORDS
        if not _may_rest(claim, absent):
            return one
        facts = SentenceFacts(claim.read or claim.text, self._language)
        held = [other for near in self._aligner.best(facts.content, least=_ENOUGH) for other in near.facts.quantities]
        sought = [ours for ours in facts.quantities if ours.raw in absent and ours.kind not in DATES]
        found = [ours for ours in sought if any(same(ours, other) for other in held)]
        beside = chain.from_iterable(facts.keys[max(0, ours.at - 1) : ours.end] for ours in found)
        return one | frozenset(quantity.raw for quantity in found) | absent.intersection(beside)

    def _with_other_accents(self, claim: Sentence) -> frozenset[str]:
        """The keys of names that contexts write with other accents, or with none; those of English have none."""
        pairs = zip(claim.words, claim.keys, strict=True)
        named = frozenset([key for word, key in pairs if word[0].isupper() and key not in self._shared])
        return frozenset([key for key in named if without_accents(key) in self._without_accents])

    @Lazy
    def _without_accents(self) -> frozenset[str]:
        """The words of the contexts."""
        return frozenset(without_accents(word) for context in self._contexts for word in context.places)

    def contradictions(self, claim: Sentence, absent: frozenset[str]) -> tuple[Contradiction, ...]:
        """What the claim says otherwise than the context sentences that it rests on.

        A claim that a context has word for word says nothing otherwise. `absent` are the keys of its content words that
        neither the contexts nor the question hold.
        """
        if not absent and self._shared.has_sentence(claim.keys):
            return ()
        if self._language.code != "en":
            found = (
                [find_in_other_language(claim, self._contexts, self._shared, self._language, self._asked)]
                if self._lone
                else []
            )
        elif claim.text.endswith(":"):
            return ()
        else:
            found = self._of_lone(claim, absent) if self._lone else self._of_one_of_many(claim, absent)
        contradictions = tuple(one for one in found if one is not None)
        if contradictions:
            return contradictions
        exact = (find_other_number, find_other_direction)
        found = [find(claim, self._contexts, self._shared) for find in exact]
        if not any(found) and self._short:
            beside = (find_swapped_parts, find_number_of_other_part) if self._lone else (find_swapped_parts,)
            found = [find(claim, self._contexts, self._shared, self._language) for find in beside]
        return tuple(one for one in found if one is not None)

    def _of_lone(self, claim: Sentence, absent: frozenset[str]) -> list[Contradiction | None]:
        facts = SentenceFacts(claim.read or claim.text, self._language)
        sought = facts.content if len(facts.content) > 1 else facts.content | self._question
        aligned = self._aligner.best(sought)
        if not aligned:
            return []
        found = [
            find_other_name(facts, aligned, self._question, self._aligner, enough=_ENOUGH)
            or find_other_subject(facts, aligned, absent)
            or find_addition(facts, aligned, absent),
            None if _CONCLUDING.intersection(facts.keys) else find_other_argument(facts, aligned, self._aligner),
        ]
        near = [one for one in aligned if one.share >= _ENOUGH]
        if near:
            found += [
                find_other_quantity(facts, aligned, self._question, self._aligner, enough=_ENOUGH),
                find_opposition(facts, aligned, self._question, enough=_ENOUGH, fewest=1),
                find_swap(facts, near),
            ]
        limiting = self._aligner.best(sought - _LIMITING) if sought & _LIMITING else near  # "at least" may face "up to"
        found.append(find_other_quantifier(facts, [one for one in limiting if one.share >= _ENOUGH]))
        return found

    def _of_one_of_many(self, claim: Sentence, absent: frozenset[str]) -> list[Contradiction | None]:
        """Numbers, denials and opposites only, where the sentences are very alike: the other rules err too often here."""
        if not _may_rest(claim, absent):
            return []
        facts = SentenceFacts(claim.read or claim.text, self._language)
        if len(facts.content) < _FEW:
            return []
        aligned = self._aligner.best(facts.content, least=_MOST)
        if not any(one.share >= _MOST for one in aligned):
            return []
        return [
            find_other_quantity(facts, aligned, _NO_WORDS, self._aligner, enough=_MOST),
            find_opposition(facts, aligned, _NO_WORDS, enough=_MOST, fewest=_FEW + 1),
        ]


def _may_rest(claim: Sentence, absent: frozenset[str]) -> bool:
    """False for a claim that shares too little with any sentence; a quick test, before the claim is taken apart."""
    if len(claim.keys) > _LONGEST:  # only its beginning is taken apart, and that may share more than the whole
        return True
    missing = sum(not is_number(word) for word in absent - may_be_elsewhere()) - _ROUNDING
    share = 1 - _MOST
    return missing <= share * (len(claim.keys) + 1) and missing <= share * (len(content_of(claim.keys)) + 1)
