"""What a metric may ask a judge, and what a judge may ask a provider of language models.

Judges hold the questions, metrics the formulas: a judge returns single verdicts and never a score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, runtime_checkable

from ragspan.records import RagRecord
from ragspan.usage import Usage

Verdict: TypeAlias = Literal["supported", "unsupported", "unsure"]


@dataclass(frozen=True, kw_only=True)
class Vote:
    """One judgement whether the contexts support the whole response."""

    grounded: bool
    explanation: str | None = None
    probability: float | None = None
    """0..1; a deterministic judge has one, because its votes are all equal."""
    unsure: bool = False
    """The judge cannot tell: the vote's value ranks the response, and says neither pass nor fail."""

    @property
    def value(self) -> float:
        """What it counts: its probability; without one, 1 for "grounded" and 0 for others (ChainPoll)."""
        return float(self.grounded) if self.probability is None else self.probability


@dataclass(frozen=True, kw_only=True)
class Rating:
    """One rating of the response from 0 to 1, such as how much of what the contexts say about the question it holds."""

    value: float
    explanation: str | None = None


@dataclass(frozen=True, kw_only=True)
class ClaimVerdict:
    """Whether one claim of the response follows from the contexts and the background."""

    index: int
    """0-based, into the claims of the question."""
    verdict: Verdict
    """`unsure`: the judge cannot tell. Such a claim counts neither for nor against the response."""
    claim: str | None = None
    explanation: str | None = None
    probability: float | None = None
    """0..1; None if the judge has none."""

    @property
    def supported(self) -> bool:
        return self.verdict == "supported"


@dataclass(frozen=True, kw_only=True)
class ContextRating:
    """One rating of a context, from 0 (nothing) to 1 (all of it); the question says what is rated."""

    index: int
    """0-based, into the record's contexts."""
    value: float
    explanation: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemQuestion:
    """A question that a metric brings: the same about each of some items, such as the citations of a response."""

    key: str
    """Lower case with underscores; unlike that of any other question."""
    about: str
    """What is asked, and what each verdict means, in words for a language model."""
    verdicts: tuple[str, ...]
    items: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemVerdict:
    """What a judge says of one item."""

    index: int
    """0-based, into the items of the question."""
    verdict: str
    explanation: str | None = None


TOO_MANY_CONTEXTS = "too_many_contexts"
LANGUAGE = "language"
CANNOT_TELL = "cannot_tell"
NOT_APPLICABLE = frozenset({TOO_MANY_CONTEXTS, LANGUAGE, CANNOT_TELL})
"""Types of a `JudgeError` after which the metric does not apply: there are more contexts than the judge can judge one by
one, the texts are in languages that it cannot compare, or its means do not suffice to tell."""


class Named(Protocol):
    @property
    def name(self) -> str:
        """The judge's name on scores."""
        ...


class Verifier(Named, Protocol):
    """The part of a judge that a classifier can do as well."""

    async def verify_claims(self, record: RagRecord, claims: Sequence[str]) -> list[ClaimVerdict]:
        """One verdict a claim, by index. A verdict that is missing is left out, never made up."""
        ...


class Judge(Verifier, Protocol):
    """Answers the questions that the metrics ask.

    A judge asks once more for missing verdicts and returns those that it has, so a list may be shorter than asked for. It
    raises `JudgeError` if it has none.

    A judge may also have:

    - `prompt_version`, a text that changes with its prompts: do not compare scores of different versions.
    - `only_ranks`, the questions (names of methods) whose answers rank responses and are not verdicts: their scores have no label.
    - `share_read(record)`, the share of the texts' characters that it reads, 0..1.
    - `cpu_bound`, True if it computes, False if it waits. An engine's helper process scores the metrics whose judges all have
      it, with copies that pickle makes; without a helper a thread does. Metrics with a judge that spends money (one with a
      `price`, see `ragspan.judges.session.Spender`) stay in the application, where the budget is.
    - `answers_together`, True if it answers all questions about a record in one request. Metrics then tell the session beforehand
      what they will ask (`JudgingSession.expect`).
    """

    async def vote_adherence(self, record: RagRecord, votes: int) -> list[Vote]:
        """Independent votes on whether the contexts support all of the response."""
        ...

    async def rate_completeness(self, record: RagRecord, ratings: int) -> list[Rating]:
        """Independent ratings of how completely the response covers what the contexts say about the question."""
        ...

    async def extract_claims(self, record: RagRecord) -> list[str]:
        """The claims of the response, each understandable by itself; none for a greeting.

        "The contexts do not say this" is a claim, too.
        """
        ...

    async def judge_usefulness(self, record: RagRecord) -> list[ContextRating]:
        """One rating a context, by index: 1 if the response uses it, 0 if it does not."""
        ...


class AnswerRelevanceJudge(Named, Protocol):
    async def rate_answer_relevance(self, record: RagRecord, ratings: int) -> list[Rating]:
        """Independent ratings of how fully the response addresses the question; 0 if it declines to answer."""
        ...


class ContextRelevanceJudge(Named, Protocol):
    async def rate_context_relevance(self, record: RagRecord) -> list[ContextRating]:
        """One rating a context, by index: 1 if it answers the question, 0 if it holds no part of an answer."""
        ...


class UtilizationJudge(Named, Protocol):
    async def measure_utilization(self, record: RagRecord) -> list[ContextRating]:
        """One rating a context, by index: the share of its text that the response states or builds on."""
        ...


@runtime_checkable
class ItemJudge(Named, Protocol):
    async def judge_items(self, record: RagRecord, question: ItemQuestion) -> list[ItemVerdict]:
        """One verdict an item, by index; one that is missing is left out."""
        ...


class ChatMessage(TypedDict):
    """A message in the form of chat endpoints."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """One choice of a chat completion."""

    text: str
    usage: Usage
    """Its share of the request's usage. The shares of all choices add up to the whole; one may have all of it."""
    problem: str | None = None
    """Why there is no text, and what to do about it; None if there is one, or nobody knows."""


class ChatClient(Protocol):
    """What an LLM judge needs of a provider."""

    async def complete(
        self, messages: Sequence[ChatMessage], *, schema: Mapping[str, Any], n: int, temperature: float
    ) -> list[Completion]:
        """Up to `n` independent completions, each JSON text that should satisfy `schema` (a JSON schema).

        Raises:
            JudgeError: there is no completion at all.
        """
        ...
