"""What a metric may ask a judge, and what a judge may ask a provider of language models.

Questions live in judges, formulas in metrics: a judge returns single verdicts and never a score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict, runtime_checkable

from ragspan.exceptions import JudgeError
from ragspan.outcomes import Usage
from ragspan.records import RagRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class Vote:
    """One judgement whether the whole response is grounded in the contexts."""

    grounded: bool
    explanation: str | None = None
    probability: float | None = None
    """0..1, where the judge has one: a deterministic judge does, whose votes are all equal."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rating:
    """One judgement of how much of what the contexts say about the question is in the response."""

    value: float
    """From 0 (nothing) to 1 (all of it)."""
    explanation: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimVerdict:
    """Whether one claim of the response follows from the contexts."""

    index: int
    """0-based, into the claims that were asked about."""
    supported: bool
    claim: str | None = None
    explanation: str | None = None
    probability: float | None = None
    """0..1, where the judge has one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextVerdict:
    """Whether one context was useful in arriving at the response."""

    index: int
    """0-based, into the record's contexts."""
    useful: bool
    explanation: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextRating:
    """How much of something one context has; what is rated, the question says."""

    index: int
    """0-based, into the record's contexts."""
    value: float
    """From 0 (nothing) to 1 (all of it)."""
    explanation: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimSupport:
    """Which further document supports a claim that the contexts do not support."""

    claim: str
    document: int | None
    """0-based, into the documents that were asked about; None for none of them."""


TOO_MANY_CONTEXTS = "too_many_contexts"
LANGUAGE = "language"
NOT_APPLICABLE = frozenset({TOO_MANY_CONTEXTS, LANGUAGE})
"""Types of a `JudgeError` that say that what was asked does not apply: more contexts than a judge tells apart, or texts in
languages that it cannot compare."""


def require_few_contexts(count: int, most: int) -> None:
    """Raise where each context should be judged by itself and there are more than a judge tells apart: it does not apply."""
    if count > most:
        raise JudgeError(TOO_MANY_CONTEXTS, f"the judge tells no more than {most} of {count} contexts apart")


class Verifier(Protocol):
    """The part of a judge that a classifier can do as well."""

    @property
    def name(self) -> str: ...

    async def verify_claims(self, record: RagRecord, claims: Sequence[str]) -> list[ClaimVerdict]:
        """One verdict a claim, by index. A verdict that could not be had is left out, never made up."""
        ...


class Judge(Verifier, Protocol):
    """Answers the questions that the metrics ask.

    A judge asks once more for verdicts that are missing and returns those that it got, so a list may be shorter than
    asked for. It raises `JudgeError` when it got none at all.

    A judge may have besides:

    - `prompt_version`, a text that changes with the wording of its prompts: scores of different versions should not be compared.
    - `share_read(record)`, the share of the texts' characters that it judges by, 0..1.
    - `cpu_bound`, True if it computes, False if it waits. An engine's helper process scores the metrics whose judges all have
      it, with copies that pickle makes. If there is no helper, a thread does that for judges that compute. Metrics with a
      judge that spends money (one with a `price`, see `ragspan.judges.session.Spender`) stay in the application, where the
      budget is.
    - `prepare()`, which imports what judging needs. An engine with `judging="thread"` calls it when it is made.
    """

    async def vote_adherence(self, record: RagRecord, votes: int) -> list[Vote]:
        """Independent votes on whether all of the response is grounded in the contexts."""
        ...

    async def rate_completeness(self, record: RagRecord, ratings: int) -> list[Rating]:
        """Independent ratings of how completely the response covers what the contexts say about the question."""
        ...

    async def extract_claims(self, record: RagRecord) -> list[str]:
        """The claims that the response makes, each understandable by itself; none for a greeting.

        That the contexts do not say something is a claim, too.
        """
        ...

    async def judge_usefulness(self, record: RagRecord) -> list[ContextVerdict]:
        """One verdict a context, by index: was it useful in arriving at the response?"""
        ...


class AnswerRelevanceJudge(Protocol):
    """A judge that can tell what a response has to do with its question, whether or not it is true."""

    @property
    def name(self) -> str: ...

    async def rate_answer_relevance(self, record: RagRecord, ratings: int) -> list[Rating]:
        """Independent ratings of how fully the response addresses the question; 0 for one that declines to answer."""
        ...


class ContextRelevanceJudge(Protocol):
    """A judge that can tell what a context has to do with a question, whatever was made of it."""

    @property
    def name(self) -> str: ...

    async def rate_context_relevance(self, record: RagRecord) -> list[ContextRating]:
        """One rating a context, by index: 1 if it answers the question, 0 if it holds nothing of an answer."""
        ...


class UtilizationJudge(Protocol):
    """A judge that can tell which part of a context went into a response."""

    @property
    def name(self) -> str: ...

    async def measure_utilization(self, record: RagRecord) -> list[ContextRating]:
        """One rating a context, by index: the share of its text that the response conveys or rests upon."""
        ...


@runtime_checkable
class SupportJudge(Protocol):
    """A judge that can look for the support that contexts lack, which tells why a response fails."""

    @property
    def name(self) -> str: ...

    async def find_support(
        self, record: RagRecord, claims: Sequence[str] | None, documents: Sequence[str]
    ) -> list[ClaimSupport]:
        """For each claim the further document that supports it, or none; claims of which the judge is not sure are left out.

        Args:
            record: what the claims are from.
            claims: those that the contexts do not support; None stands for all such statements of the response.
            documents: texts that are not among the contexts.
        """
        ...


class ChatMessage(TypedDict):
    """A message as the providers' chat endpoints take it."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """One choice of a chat completion."""

    text: str
    usage: Usage
    """Its share of what the request cost; the shares of a request's choices add up to the whole."""


class ChatClient(Protocol):
    """What an LLM judge needs of a provider."""

    async def complete(
        self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any], n: int, temperature: float
    ) -> list[Completion]:
        """Up to `n` independent completions, each JSON text that should satisfy `schema` (a JSON schema).

        Raises:
            JudgeError: no completion at all could be had.
        """
        ...
