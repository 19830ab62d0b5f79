"""What the judge knows of one record, read once for all questions, and kept for the next few."""

from __future__ import annotations

from collections.abc import Sequence

from ragspan.judges.base import require_few_contexts
from ragspan.judges.overlap.across import (
    comparable_claims,
    grade_across,
    note_on,
    require_claims,
    require_comparable,
)
from ragspan.judges.overlap.alignment import Alignment
from ragspan.judges.overlap.claims import MAX_CHARACTERS as MAX_RESPONSE
from ragspan.judges.overlap.claims import Claim, as_claim, read_claims
from ragspan.judges.overlap.completeness import Coverage, cover
from ragspan.judges.overlap.contexts import (
    MAX_CHARACTERS,
    MAX_CONTEXTS,
    Context,
    ContextReader,
    told_apart,
    within_bounds,
)
from ragspan.judges.overlap.grounding import Grade, answer_score, grade_claims, probability
from ragspan.judges.overlap.languages import Languages, characters_read, guess, languages_of
from ragspan.judges.overlap.stems import MOST_STEMS
from ragspan.judges.overlap.usefulness import conveyed_shares, held_shares, shared_with_response
from ragspan.records import RagRecord

_MAX_QUESTION = 20_000
"""Characters of a question that are read."""
_LONG = 20_000
"""Characters of a record, below which its words are not counted."""


class Analysis:
    """One record's claims and contexts, and the grades of its claims once they are asked for.

    No `functools.cached_property`: up to Python 3.11 it takes a lock, which a fork could leave locked for ever.
    """

    def __init__(self, record: RagRecord, reader: ContextReader | None = None) -> None:
        self.record = record
        self.size = record.size_hint
        texts = [context.text for context in record.contexts or ()]
        response, question = record.response or "", record.question or ""
        question = question[: characters_read([question], _MAX_QUESTION)[0]]
        self.languages = languages_of(response, texts, question)
        texts = within_bounds(texts)
        if _has_many_words([response[:MAX_RESPONSE], question, *texts]):
            self.languages = self.languages.with_few_stems()
        self.language = self.languages.response
        self.claims = read_claims(response, self.language)
        if not self.languages.are_comparable:
            self.claims = comparable_claims(self.claims, self.languages)
        self._question = frozenset(self.language.keys(question))
        reader = ContextReader() if reader is None else reader
        self.contexts = reader.read(texts, self.languages.contexts)
        self._found: Alignment | None = None
        self._grades: list[Grade] | None = None

    @property
    def grades(self) -> list[Grade]:
        """One for each of the response's own claims."""
        if self._grades is None:
            require_claims(self.claims, self.languages)
            self._grades = self._graded(self.claims, self._alignment)
        return self._grades

    @property
    def grounding(self) -> float:
        """The probability that all of the response is supported, 0..1; 0 when it claims nothing."""
        return probability(answer_score(self.grades, self.language), self.language) if self.grades else 0.0

    def grade(self, claims: Sequence[str]) -> list[Grade]:
        """One grade for each of any claims."""
        if list(claims) == [claim.text for claim in self.claims]:
            return self.grades
        read = [as_claim(claim, self.language) for claim in claims]
        return self._graded(read, Alignment(read, self.contexts))

    @property
    def note(self) -> str | None:
        """What the grades rest on, where that is less than all words."""
        return None if self.languages.are_comparable else note_on(self.languages)

    def _graded(self, claims: Sequence[Claim], alignment: Alignment) -> list[Grade]:
        if not self.languages.are_comparable:
            return grade_across(claims, self.contexts, self.languages)
        return grade_claims(claims, self.contexts, alignment, self._question, self.language)

    def coverage(self) -> Coverage:
        """What the response has of what the contexts say about the question."""
        require_comparable(self.languages)
        return cover(self._alignment.content, self.contexts, self._question)

    def shared(self) -> list[float]:
        """What each context shares with the response."""
        require_comparable(self.languages)
        return shared_with_response(self._alignment, self._each_context())

    def conveyed(self) -> list[float]:
        """The share of each context that the response conveys."""
        require_comparable(self.languages)
        return conveyed_shares(self._alignment.content, self._each_context())

    def asked(self) -> list[float]:
        """The share of the question's words that each context holds."""
        require_comparable(self._languages_of_question())
        return held_shares(self._question, self._each_context())

    def _languages_of_question(self) -> Languages:
        question = self.record.question or ""
        if guess(question) is None:
            return self.languages
        return languages_of(question, [context.text for context in self.record.contexts or ()])

    @property
    def _alignment(self) -> Alignment:
        if self._found is None:
            self._found = Alignment(self.claims, self.contexts)
        return self._found

    def _each_context(self) -> Sequence[Context]:
        require_few_contexts(len(self.record.contexts or ()), MAX_CONTEXTS)
        return self.contexts


def _has_many_words(texts: Sequence[str]) -> bool:
    """Whether they are long, and have more different words than have stems."""
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


class RecentAnalyses:
    """The analyses of the last few records, for the questions of the other metrics.

    Bounded by the number of records and by the size of their texts; the last record is kept whatever its size. Safe
    from any thread without a lock: the entries are one immutable tuple, and a lost race costs no more than reading a
    record twice.
    """

    def __init__(self, max_records: int = 32, max_bytes: int = 4 * 1024 * 1024) -> None:
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._entries: tuple[Analysis, ...] = ()
        self._reader = ContextReader()

    def __len__(self) -> int:
        return len(self._entries)

    def of(self, record: RagRecord) -> Analysis:
        for analysis in self._entries:
            if analysis.record is record:  # ids may repeat, records that are equal may differ in what they hold
                return analysis
        analysis = Analysis(record, self._reader)
        self._entries = (analysis, *self._fitting(self._entries, self._max_bytes - analysis.size))
        return analysis

    def _fitting(self, entries: Sequence[Analysis], room: int) -> list[Analysis]:
        kept: list[Analysis] = []
        for analysis in entries[: self._max_records - 1]:
            room -= analysis.size
            if room < 0:
                break
            kept.append(analysis)
        return kept
