"""What the screen knows of one record: its claims and contexts, read once for the questions of all metrics."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from ragspan.exceptions import JudgeError
from ragspan.judges.judge_protocols import CANNOT_TELL, LANGUAGE, Verdict, require_few_contexts
from ragspan.judges.screen.claims import Response
from ragspan.judges.screen.contexts import (
    MAX_CHARACTERS,
    MAX_CONTEXTS,
    Context,
    ContextReader,
    Index,
    told_apart,
    within_bounds,
)
from ragspan.judges.screen.findings import YES
from ragspan.judges.screen.grading import DECLINES, Grade, answer_score, declined, grade, is_unrelated, probability
from ragspan.records import RagRecord
from ragspan.text.answers import stated
from ragspan.text.keys import content_of
from ragspan.text.languages import Languages, characters_read, guess, languages_of
from ragspan.text.lazy import Lazy
from ragspan.text.responses import MAX_CHARACTERS as MAX_RESPONSE
from ragspan.text.responses import declines, read_claims
from ragspan.text.sentences import Sentence, read_sentence

PASSES, HARDLY = 0.55, 0.2
"""The probability from which on a response or a claim passes, and the one below which a response of some sentences fails."""
MANY_CLAIMS = 3
"""Claims of a response that fails because the contexts hold hardly anything of it."""
_MAX_QUESTION = 20_000
"""Characters of a question that are read."""
_LONG = 10_000
"""Characters of a record from which on the words of other languages than English are not stemmed."""


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
        contexts = [context.text for context in record.contexts or ()]
        self.documents = len(contexts) if documents is None else documents
        self._alone = alone
        response, question = record.response or "", record.question or ""
        self._stated = stated(response)
        question = question[: characters_read([question], _MAX_QUESTION)[0]]
        texts = within_bounds(contexts)
        languages = languages_of(self._stated, texts, question)
        if sum(map(len, [*texts, response[:MAX_RESPONSE]])) > _LONG:
            languages = Languages(languages.response.quick, languages.contexts.quick, languages.are_comparable)
        self.languages, self.language = languages, languages.response
        self._claims = read_claims(response, self.language)
        self.question = frozenset(read_sentence(question, self.language).keys)
        reader = ContextReader() if reader is None else reader
        self.contexts = tuple([reader.read(text, languages.contexts) for text in texts])
        self.index = Index(self.contexts)
        self.index.look_up(self.question.union(*[claim.keys for claim in self._claims]))

    @property
    def claims(self) -> tuple[Sentence, ...]:
        """The response's own claims.

        Raises:
            JudgeError: the response is in another language than the contexts (`language`), or its words are too general, as "Yes."
                (`cannot_tell`).
        """
        if self.declines_rightly:
            return self._claims
        _require_comparable(self.languages)
        if not self._claims and any(map(str.isalnum, self._stated)):  # "Yes."
            raise JudgeError(CANNOT_TELL, "the response has no words that a context could hold")
        return self._claims

    @Lazy
    def grades(self) -> list[Grade]:
        """One for each of the response's own claims."""
        return self._graded(self.claims)

    @Lazy
    def grounding(self) -> float:
        """The probability that all of the response is supported, 0..1; 0 when it claims nothing."""
        if not self.grades:
            return 0.0
        grounding = probability(answer_score(self.grades, self.language), self.language)
        with contextlib.suppress(JudgeError):  # the response cannot be compared with these contexts
            return grounding if self._alone is None else max(grounding, self._alone.grounding)
        return grounding

    @Lazy
    def verdict(self) -> Verdict:
        """Of the whole response: it fails by a finding, or if hardly anything of a longer one stands in the contexts."""
        if self.is_hardly_held or any(grade.findings for grade in self.grades):
            return "unsupported"
        is_clear = self.grounding >= PASSES and not any(grade.unsure for grade in self.grades)
        return "supported" if is_clear else "unsure"

    @Lazy
    def is_hardly_held(self) -> bool:
        """Whether the contexts hold hardly anything of a response of some sentences."""
        is_long = len(self.grades) >= MANY_CLAIMS and not self._declines
        return is_long and self.grounding < HARDLY and not any(grade.findings for grade in self.grades)

    def verdict_on(self, grade: Grade) -> Verdict:
        """Of one claim."""
        supported = probability(grade.score, self.language)
        if grade.findings or (self.is_hardly_held and supported < HARDLY):
            return "unsupported"
        return "unsure" if grade.unsure is not None or supported < PASSES else "supported"

    def require_comparable(self) -> None:
        """Raise a `JudgeError` (`cannot_tell`) where a response declines, and contexts may hold an answer."""
        if not self.declines_rightly and self._declines:
            reason = "the response declines, and words do not show whether the contexts hold an answer"
            raise JudgeError(CANNOT_TELL, reason)

    @Lazy
    def _declines(self) -> bool:
        return declines(self.record.response or "")

    @Lazy
    def declines_rightly(self) -> bool:
        """Whether the response declines, and the contexts are about something else."""
        return self._declines and is_unrelated(content_of(self.question), self.index)

    def grade(self, claims: Sequence[str]) -> list[Grade]:
        """One grade for each of any claims."""
        if list(claims) == [claim.text for claim in self._claims]:
            return self.grades
        return self._graded([read_sentence(claim, self.language) for claim in claims])

    @property
    def compared_claims(self) -> Sequence[Sentence]:
        """The response's claims, if their words can be looked for in the contexts.

        Raises:
            JudgeError: they cannot (`language`).
        """
        _require_comparable(self.languages)
        return self._claims

    @property
    def each_context(self) -> Sequence[Context]:
        """All contexts.

        Raises:
            JudgeError: neighbours count as one (`too_many_contexts`).
        """
        require_few_contexts(len(self.record.contexts or ()), MAX_CONTEXTS)
        return self.contexts

    def require_question(self) -> None:
        """Raise a `JudgeError` (`language`) where the question is in another language than the contexts."""
        question = self.record.question or ""
        is_clear = guess(question) is not None
        texts = [context.text for context in self.record.contexts or ()] if is_clear else ()
        _require_comparable(languages_of(question, texts) if is_clear else self.languages)

    def _graded(self, claims: Sequence[Sentence]) -> list[Grade]:
        if self.declines_rightly:
            return [declined(claim.text) for claim in claims]
        if self._declines:
            return [Grade(sentence=claim.text, unsure=DECLINES) for claim in claims]
        _require_comparable(self.languages)
        response = Response(self.index, self.question, self.language, len(claims))
        affirms = not YES.isdisjoint(one.lower() for one in self.language.tokens(self._stated[:20])[:1])
        grades = [grade(claim, response, affirms=affirms and not at) for at, claim in enumerate(claims)]
        with contextlib.suppress(JudgeError):  # the others are in another language
            alone = [] if self._alone is None else self._alone.grade([claim.text for claim in claims])
            grades = (
                [max(pair, key=lambda one: one.score) for pair in zip(alone, grades, strict=True)] if alone else grades
            )
        return grades


def _require_comparable(languages: Languages) -> None:
    if not languages.are_comparable:
        raise JudgeError(LANGUAGE, f"{languages.apart}, and the embedded judge compares words")


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
