"""What the screen knows of one record: its claims and contexts, read once for the questions of all metrics."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from ragspan.exceptions import JudgeError
from ragspan.judges.judge_protocols import CANNOT_TELL, LANGUAGE, Verdict, require_few_contexts
from ragspan.judges.screen.contexts import (
    MAX_CHARACTERS,
    MAX_CONTEXTS,
    Context,
    ContextReader,
    told_apart,
    within_bounds,
)
from ragspan.judges.screen.coverage import Coverage, conveyed_shares, cover, held_shares, shared_with_response
from ragspan.judges.screen.evidence import Evidence
from ragspan.judges.screen.grading import DECLINES, Grade, Grader, answer_score, is_unrelated, probability
from ragspan.records import RagRecord
from ragspan.text.answers import stated
from ragspan.text.keys import content_of, is_content, is_negation, is_number
from ragspan.text.languages import Language, Languages, characters_read, guess, languages_of
from ragspan.text.lazy import Lazy
from ragspan.text.responses import MAX_CHARACTERS as MAX_RESPONSE
from ragspan.text.responses import declines, read_claims
from ragspan.text.sentences import Sentence, read_sentence
from ragspan.text.vocabulary import MOST_STEMS

PASSES, HARDLY = 0.55, 0.2
"""The probability from which on a response or a claim passes, and the one below which a response of some sentences fails."""
MANY_CLAIMS = 3
"""Claims of a response that fails because the contexts hold hardly anything of it."""
_MAX_QUESTION = 20_000
"""Characters of a question that are read."""
_FEW_CLAIMS = 2
_LONG = 20_000
"""Characters of a record below which its words are not counted."""
_NAME = 5
"""Letters of a name that are compared across languages, because languages put endings to names."""


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
        self._stated = stated(record.response or "")
        question = record.question or ""
        question = question[: characters_read([question], _MAX_QUESTION)[0]]
        self.languages = languages_of(self._stated, texts, question)
        texts = within_bounds(texts)
        if _has_many_words([self._stated[:MAX_RESPONSE], question, *texts]):
            self.languages = self.languages.with_few_stems()
        self.language = self.languages.response
        self._claims = read_claims(record.response or "", self.language)
        if not self.languages.are_comparable:
            self._claims = tuple(claim for claim in self._claims if any(_numbers_and_names(claim, self.languages)))
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
        return self._graded(self.claims, self._evidence)

    @Lazy
    def grounding(self) -> float:
        """The probability that all of the response is supported, 0..1; 0 when it claims nothing."""
        if not self.grades:
            return 0.0
        grounding = probability(answer_score(self.grades, self.language), self.language)
        return grounding if self._alone is None else max(grounding, _grounding_of(self._alone))

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
        if grade.unsure is not None or supported < PASSES:
            return "unsure"
        return "supported"

    def require_comparable(self) -> None:
        """Raise a `JudgeError` (`cannot_tell`) where a response declines, and contexts may hold an answer."""
        if not self.declines_rightly and self._declines:
            raise JudgeError(
                CANNOT_TELL, "the response declines, and words do not show whether the contexts hold an answer"
            )

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
        read = [read_sentence(claim, self.language) for claim in claims]
        return self._graded(read, Evidence(read, self.contexts))

    def closest(self, claim: str) -> str | None:
        """The sentence of the contexts with most of the words of a claim; None where none has any."""
        places = self._evidence.closest(content_of(self.language.keys(claim)))
        return next((self.contexts[place.context].text_of(place.sentence) for place in places), None)

    @property
    def note(self) -> str | None:
        """What the grades rest on, where that is less than all words."""
        apart = self.languages.apart
        return None if self.languages.are_comparable else f"Only numbers and names were compared, because {apart}."

    def coverage(self) -> Coverage:
        """What the response has of what the contexts say about the question."""
        _require_comparable(self.languages)
        return cover(self._evidence.content, self.contexts, self.question)

    def shared(self) -> list[float]:
        """How much of the response each context shares, 0..2."""
        _require_comparable(self.languages)
        return shared_with_response(self._evidence, self._each_context())

    def conveyed(self) -> list[float]:
        """The share of each context that the response conveys."""
        _require_comparable(self.languages)
        return conveyed_shares(self._evidence.content, self._each_context())

    def asked(self) -> list[float]:
        """The share of the question's words that each context holds."""
        _require_comparable(self._languages_of_question())
        return held_shares(self.question, self._each_context())

    def _graded(self, claims: Sequence[Sentence], evidence: Evidence) -> list[Grade]:
        if self.declines_rightly:
            return [Grade(sentence=claim.text, declines_rightly=True) for claim in claims]
        if self._declines:
            return [Grade(sentence=claim.text, unsure=DECLINES) for claim in claims]
        if not self.languages.are_comparable:
            return self._graded_across(claims)
        lone = len(claims) <= _FEW_CLAIMS
        grader = Grader(self.contexts, evidence, self.question, self.language, lone=lone)
        affirms = _affirms(self._stated, self.language)
        grades = [grader.grade(claim, affirms=affirms and not at) for at, claim in enumerate(claims)]
        if self._alone is None:
            return grades
        with contextlib.suppress(JudgeError):  # these are in another language
            alone = self._alone.grade([claim.text for claim in claims])
            return [max(pair, key=lambda grade: grade.score) for pair in zip(alone, grades, strict=True)]
        return grades

    def _graded_across(self, claims: Sequence[Sentence]) -> list[Grade]:
        """A grade for each claim in another language than the contexts: the share of its numbers and names that they hold."""
        held = {key for context in self.contexts for key in context.keys if is_number(key)}
        texts = (context.text_of(at) for context in self.contexts for at in range(len(context)))
        held |= {word.lower()[:_NAME] for text in texts for word in self.languages.contexts.tokens(text)}
        return [self._grade_across(claim, held) for claim in claims]

    def _grade_across(self, claim: Sentence, held: set[str]) -> Grade:
        sought = list(_numbers_and_names(claim, self.languages))
        if not sought:
            raise JudgeError(LANGUAGE, f"{self.languages.apart}, and a claim has no numbers or names to compare")
        missing = [(word, key) for word, key in sought if key not in held]
        return Grade(
            sentence=claim.text,
            window=1 - len(missing) / len(sought),
            context=0,
            numbers=tuple(word for word, key in missing if is_number(key)),
            names=tuple(word for word, key in missing if not is_number(key)),
        )

    def _languages_of_question(self) -> Languages:
        question = self.record.question or ""
        if guess(question) is None:
            return self.languages
        return languages_of(question, [context.text for context in self.record.contexts or ()])

    @Lazy
    def _evidence(self) -> Evidence:
        return Evidence(self._claims, self.contexts)

    def _each_context(self) -> Sequence[Context]:
        require_few_contexts(len(self.record.contexts or ()), MAX_CONTEXTS)
        return self.contexts


def _affirms(response: str, language: Language) -> bool:
    """Whether a response begins with a yes."""
    first = language.tokens(response[:20])[:1]
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


def _numbers_and_names(claim: Sentence, languages: Languages) -> Iterator[tuple[str, str]]:
    """Numbers with their keys, and names with their roots: capitalised words but the first, if the scripts are the same."""
    has_names = languages.response.script == languages.contexts.script and not languages.response.capitalises_nouns
    for at, (word, key) in enumerate(zip(claim.words, claim.keys, strict=True)):
        if is_number(key):
            yield word, key
        elif has_names and at and word[0].isupper() and is_content(key):
            yield word, word.lower()[:_NAME]


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
