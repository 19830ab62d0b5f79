"""What the screen knows of one record: its claims and contexts, read once for the questions of all metrics."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from ragspan.exceptions import JudgeError
from ragspan.judges.judge_protocols import CANNOT_TELL, LANGUAGE, TOO_MANY_CONTEXTS, Verdict
from ragspan.judges.screen.claims import Response
from ragspan.judges.screen.contexts import MAX_CHARACTERS, MAX_CONTEXTS, Index, read_context
from ragspan.judges.screen.facts import english
from ragspan.judges.screen.findings import YES
from ragspan.judges.screen.grading import Grade, answer_score, grade, is_unrelated, probability
from ragspan.judges.screen.relevance import shared_with_response
from ragspan.records import RagRecord
from ragspan.text.answers import stated
from ragspan.text.keys import content_of, readable
from ragspan.text.languages import Languages, guess, languages_of
from ragspan.text.lazy import Lazy
from ragspan.text.limits import characters_read
from ragspan.text.responses import MAX_CHARACTERS as MAX_RESPONSE
from ragspan.text.responses import declines, read_claims
from ragspan.text.sentences import Sentence, read_sentence

PASSES, HARDLY = 0.55, 0.2
"""The probability from which on a response or a claim passes, and the one below which a response of some sentences fails."""
MANY_CLAIMS = 3  # claims of a response that fails because the contexts hold hardly anything of it
_MAX_QUESTION = 20_000  # characters of a question that are read


class Analysis:
    """One record's claims and contexts, and the grades of its claims once they are asked for.

    The first `documents` contexts are documents. Those after them are background, which contradicts nothing.
    """

    def __init__(self, record: RagRecord, *, documents: int | None = None) -> None:
        self.record = record
        contexts = [context.text for context in record.contexts or ()]
        self.documents = len(contexts) if documents is None else documents
        response, question = record.response or "", record.question or ""
        self._stated = stated(response)
        question = question[: characters_read([question], _MAX_QUESTION)[0]]
        shares = characters_read(contexts[:MAX_CONTEXTS], MAX_CHARACTERS)
        texts = [text[:share] for text, share in zip(contexts, shares, strict=False)]
        self.languages = languages_of(self._stated, texts, question)
        self.language = self.languages.response
        self._claims = read_claims(response, self.language)
        self._read = sum(shares) + len(question) + characters_read([response], MAX_RESPONSE)[0]
        self.asked = content_of(read_sentence(readable(question), self.language).keys)
        """The content words of the question."""
        self.index = Index([read_context(text, self.languages.contexts) for text in texts], self.documents)
        self._said = content_of(chain.from_iterable(claim.keys for claim in self._claims))
        sought = self.asked | self._said
        opposites = english().opposites if self.language.code == "en" else {}
        self.index.look_up(sought.union(*[opposites[word] for word in opposites.keys() & sought]))
        self._declines = declines(response)
        self.declines_rightly = self._declines and is_unrelated(self.asked, self.index)
        """Whether the response declines, and the contexts are about something else."""

    @Lazy
    def share_read(self) -> float:
        """The share of the characters of the record's texts that is read, 0..1."""
        texts = (one.text for one in self.record.contexts or ())
        whole = sum(map(len, (self.record.response or "", self.record.question or "", *texts)))
        return self._read / whole if whole else 1.0

    @property
    def claims(self) -> tuple[Sentence, ...]:
        """The response's own claims.

        Raises:
            JudgeError: the response is in another language than the contexts (`language`), or its words are too general, as "Yes."
                (`cannot_tell`).
        """
        if not self.declines_rightly:
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
        return probability(answer_score(self.grades, self.language), self.language) if self.grades else 0.0

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
        is_long = sum(grade.unsure is None for grade in self.grades) >= MANY_CLAIMS and not self._declines
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

    def grade(self, claims: Sequence[str]) -> list[Grade]:
        """One grade for each of any claims."""
        if list(claims) == [claim.text for claim in self._claims]:
            return self.grades
        return self._graded([read_sentence(readable(claim), self.language) for claim in claims])

    @Lazy
    def words(self) -> frozenset[str]:
        """The content words of the response's claims; raises a `JudgeError` (`language`) if contexts cannot hold them."""
        _require_comparable(self.languages)
        return self._said

    @Lazy
    def shared(self) -> list[float]:
        """How much of the response each context shares, 0..1; raises a `JudgeError` where some contexts are not read."""
        self.require_each_context()
        return shared_with_response(self.words, self.index)

    def require_each_context(self) -> None:
        """Raise a `JudgeError` (`too_many_contexts`) where some contexts are not read."""
        if (count := len(self.record.contexts or ())) > MAX_CONTEXTS:
            words = f"the judge can judge only {MAX_CONTEXTS} of {count} contexts one by one"
            raise JudgeError(TOO_MANY_CONTEXTS, words)

    def require_question(self) -> None:
        """Raise a `JudgeError` (`language`) where the question is in another language than the contexts."""
        question = self.record.question or ""
        is_clear = guess(question) is not None
        texts = [context.text for context in self.record.contexts or ()] if is_clear else ()
        _require_comparable(languages_of(question, texts) if is_clear else self.languages)

    def _graded(self, claims: Sequence[Sentence]) -> list[Grade]:
        if self.declines_rightly:
            return [Grade(sentence=claim.text, score=1.0, declines_rightly=True) for claim in claims]
        self.require_comparable()
        _require_comparable(self.languages)
        response = Response(self.index, self.asked, self.language, claims)
        affirms = not YES.isdisjoint(one.lower() for one in self.language.tokens(self._stated[:20])[:1])
        return [grade(claim, response, affirms=affirms and not at) for at, claim in enumerate(claims)]


def _require_comparable(languages: Languages) -> None:
    if not languages.are_comparable:
        apart = f"the response is in {languages.response.name} and the contexts are in {languages.contexts.name}"
        raise JudgeError(LANGUAGE, f"{apart}, and the embedded judge compares words")
