"""What the judge knows of one record: its claims and contexts, read once for the questions of all metrics."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from ragspan.exceptions import JudgeError
from ragspan.judges.judge_protocols import CANNOT_TELL, LANGUAGE, require_few_contexts
from ragspan.judges.overlap.abbreviations import as_in_contexts
from ragspan.judges.overlap.context_reader import (
    MAX_CHARACTERS,
    MAX_CONTEXTS,
    Context,
    ContextReader,
    Place,
    told_apart,
    within_bounds,
)
from ragspan.judges.overlap.coverage import Coverage, conveyed_shares, cover, held_shares, shared_with_response
from ragspan.judges.overlap.derived import ALWAYS, DECLINES, OPEN, SHORT, is_unrelated
from ragspan.judges.overlap.grounding import (
    Grade,
    answer_score,
    at_best_and_worst,
    grade_claims,
    probability,
)
from ragspan.judges.overlap.other_language_claims import comparable_claims, grade_across
from ragspan.judges.overlap.shared_words import SharedWords, Telling
from ragspan.records import RagRecord
from ragspan.text.answers import stated
from ragspan.text.keys import content_of, is_negation
from ragspan.text.languages import Language, Languages, characters_read, guess, languages_of
from ragspan.text.lazy import Lazy
from ragspan.text.responses import MAX_CHARACTERS as MAX_RESPONSE
from ragspan.text.responses import declines, read_claims
from ragspan.text.sentences import Sentence, read_sentence
from ragspan.text.vocabulary import MOST_STEMS

EVEN = 0.5
"""The probability from which on a response or a claim passes."""
_MAX_QUESTION = 20_000
"""Characters of a question that are read."""
_REPLY = 20
"""Characters of a response that hold its first word."""
_LONG = 20_000
"""Characters of a record below which its words are not counted."""


class Analysis:
    """One record's claims and contexts, and the grades of its claims once they are asked for.

    Args:
        record: its contexts are what the claims are compared with.
        reader: keeps contexts.
        alone: the analysis of some of the contexts. Further ones only add support: the better grade of a claim counts.
        documents: how many of the contexts are documents, where those after them are background.
    """

    def __init__(
        self,
        record: RagRecord,
        reader: ContextReader | None = None,
        *,
        alone: Analysis | None = None,
        documents: int | None = None,
    ) -> None:
        self.record = record
        self.documents = len(record.contexts or ()) if documents is None else documents
        self._alone = alone
        texts = [context.text for context in record.contexts or ()]
        response, question = stated(record.response or ""), record.question or ""
        self._stated = response
        question = question[: characters_read([question], _MAX_QUESTION)[0]]
        self.languages = languages_of(response, texts, question)
        texts = within_bounds(texts)
        if _has_many_words([response[:MAX_RESPONSE], question, *texts]):
            self.languages = self.languages.with_few_stems()
        self.language = self.languages.response
        self._texts = texts
        self._closest: dict[str, Place | None] = {}
        self._claims = self._as_in_contexts(read_claims(record.response or "", self.language))
        if not self.languages.are_comparable:
            self._claims = comparable_claims(self._claims, self.languages)
        self.question = frozenset(self.language.keys(question))
        self.contexts = (ContextReader() if reader is None else reader).read(texts, self.languages.contexts)

    @property
    def claims(self) -> tuple[Sentence, ...]:
        """The response's own claims; of a response in another language than the contexts, those with numbers or names.

        Raises:
            JudgeError: such a response has none (`language`), or one whose words are too general, as "Yes." (`cannot_tell`).
        """
        if self.declines_rightly:
            return read_claims(self.record.response or "", self.language)
        if not self._claims and not self.languages.are_comparable:
            raise JudgeError(LANGUAGE, f"{self.languages.apart}, and it has no numbers or names to compare")
        if not self._claims and any(map(str.isalnum, self._stated)):  # "Yes."
            raise JudgeError(CANNOT_TELL, "the response has no words that a context could hold")
        return self._claims

    @Lazy
    def grades(self) -> list[Grade]:
        """One for each of the response's own claims."""
        return self._graded(self.claims, self._shared)

    @Lazy
    def grounding(self) -> float:
        """The probability that all of the response is supported, 0..1; 0 when it claims nothing."""
        if not self.grades:
            return 0.0
        grounding = probability(answer_score(self.grades, self.language), self.language)
        return grounding if self._alone is None else max(grounding, _grounding_of(self._alone))

    def require_certain(self) -> None:
        """Raise a `JudgeError` (`cannot_tell`) where words do not show whether the response is right.

        A response that declines as a whole is right if the contexts hold no answer, which words do not tell; nor do they
        tell whether claims hold that follow from several facts.
        """
        if not self.declines_rightly and self._declines:
            raise JudgeError(
                CANNOT_TELL, "the response declines, and words do not show whether the contexts hold an answer"
            )
        if self.grades and all(grade.unsure in ALWAYS for grade in self.grades):
            raise JudgeError(CANNOT_TELL, f"{self.grades[0].unsure}, which words do not show")

    def require_certain_grounding(self) -> None:
        """Raise a `JudgeError` (`cannot_tell`) where claims that may be right or wrong decide whether all is supported."""
        self.require_certain()
        reason = next((grade.unsure for grade in self.grades if grade.unsure in OPEN), None)
        if reason is not None:
            cases = at_best_and_worst(self.grades)
            best, worst = (probability(answer_score(grades, self.language), self.language) for grades in cases)
            if worst < EVEN <= best:
                raise JudgeError(CANNOT_TELL, f"{reason}, which words do not show")

    @Lazy
    def _declines(self) -> bool:
        return declines(self.record.response or "")

    @Lazy
    def declines_rightly(self) -> bool:
        """Whether the response declines, and the contexts are about something else."""
        return self._declines and is_unrelated(content_of(self.question), self.contexts)

    def grade(self, claims: Sequence[str]) -> list[Grade]:
        """One grade for each of any claims."""
        if list(claims) == [claim.text for claim in self._claims]:
            return self.grades
        read = self._as_in_contexts([read_sentence(claim, self.language) for claim in claims])
        return self._graded(read, SharedWords(read, self.contexts))

    def closest(self, claim: str) -> Place | None:
        """The sentence of the contexts with most of the words of a claim and its question."""
        if claim not in self._closest:
            known = next((one.keys for one in self._claims if one.text == claim), None)
            own = content_of(known or self.language.keys(claim))
            self._closest[claim] = self._shared.nearest(own, self._asked)
        return self._closest[claim]

    @Lazy
    def _asked(self) -> Telling:
        return self._shared.telling(content_of(self.question))

    @property
    def note(self) -> str | None:
        """What the grades rest on, where that is less than all words."""
        apart = self.languages.apart
        return None if self.languages.are_comparable else f"only numbers and names were compared, because {apart}"

    def coverage(self) -> Coverage:
        """What the response has of what the contexts say about the question."""
        _require_comparable(self.languages)
        return cover(self._shared.content, self.contexts, self.question)

    def shared(self) -> list[float]:
        """How much of the response each context shares, 0..2."""
        _require_comparable(self.languages)
        if self.claims and all(
            grade.unsure == SHORT for grade in self.grades
        ):  # no claims: raises, or has nothing to share
            raise JudgeError(CANNOT_TELL, f"{SHORT}, which words do not show")
        return shared_with_response(self._shared, self._each_context())

    def conveyed(self) -> list[float]:
        """The share of each context that the response conveys."""
        _require_comparable(self.languages)
        return conveyed_shares(self._shared.content, self._each_context())

    def asked(self) -> list[float]:
        """The share of the question's words that each context holds."""
        _require_comparable(self._languages_of_question())
        return held_shares(self.question, self._each_context())

    def _as_in_contexts(self, claims: Sequence[Sentence]) -> tuple[Sentence, ...]:
        """The claims, of which English ones have names as the contexts write them."""
        comparable = self.language.code == "en" and self.languages.are_comparable
        return as_in_contexts(claims, self._texts) if comparable else tuple(claims)

    def _graded(self, claims: Sequence[Sentence], shared: SharedWords) -> list[Grade]:
        if self.declines_rightly:
            return [Grade(sentence=claim.text, declines_rightly=True) for claim in claims]
        if self._declines:
            return [Grade(sentence=claim.text, unsure=DECLINES) for claim in claims]
        if not self.languages.are_comparable:
            grades = grade_across(claims, self.contexts, self.languages)
        else:
            affirms = _affirms(self._stated, self.language)
            grades = grade_claims(claims, self.contexts, shared, self.question, self.language, affirms=affirms)
        if self._alone is None:
            return grades
        with contextlib.suppress(JudgeError):  # these are in another language
            alone = self._alone.grade([claim.text for claim in claims])
            return [max(pair, key=lambda grade: grade.score) for pair in zip(alone, grades, strict=True)]
        return grades

    def _languages_of_question(self) -> Languages:
        question = self.record.question or ""
        if guess(question) is None:
            return self.languages
        return languages_of(question, [context.text for context in self.record.contexts or ()])

    @Lazy
    def _shared(self) -> SharedWords:
        return SharedWords(self._claims, self.contexts)

    def _each_context(self) -> Sequence[Context]:
        require_few_contexts(len(self.record.contexts or ()), MAX_CONTEXTS)
        return self.contexts


def _affirms(response: str, language: Language) -> bool:
    """Whether a response begins with a yes."""
    first = language.tokens(response[:_REPLY])[:1]
    return first[0].lower() in language.replies and not is_negation(language.key(first[0])) if first else False


def _grounding_of(analysis: Analysis) -> float:
    """0 where the response cannot be compared with these contexts."""
    try:
        return analysis.grounding
    except JudgeError:
        return 0.0


def _require_comparable(languages: Languages) -> None:
    if not languages.are_comparable:
        raise JudgeError(LANGUAGE, f"{languages.apart}, and the embedded judge compares words")


def _has_many_words(texts: Sequence[str]) -> bool:
    """Whether they are long, and have more different words than are stemmed."""
    if sum(map(len, texts)) < _LONG:
        return False
    chunks = {chunk for text in texts for chunk in text.split()}
    return len(chunks) > MOST_STEMS and len({chunk.strip(".,;:!?()\"'").lower() for chunk in chunks}) > MOST_STEMS


def share_read(record: RagRecord) -> float:
    """The share of the characters of a record's texts that an analysis reads, 0..1."""
    contexts = [context.text for context in record.contexts or ()]
    response, question = record.response or "", record.question or ""
    whole = sum(map(len, contexts)) + len(response) + len(question)
    read = (
        *characters_read(told_apart(contexts), MAX_CHARACTERS),
        *characters_read([response], MAX_RESPONSE),
        *characters_read([question], _MAX_QUESTION),
    )
    return min(1.0, sum(read) / whole) if whole else 1.0
