"""The judge that asks a language model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence, Sized
from contextlib import AbstractAsyncContextManager, nullcontext
from itertools import chain
from typing import Protocol, TypeVar

from ragspan.exceptions import ConfigurationError, JudgeError
from ragspan.judges.base import (
    ChatClient,
    ChatMessage,
    ClaimVerdict,
    Completion,
    ContextRating,
    ContextVerdict,
    Rating,
    Vote,
    require_few_contexts,
)
from ragspan.judges.llm import prompts, replies
from ragspan.judges.llm.accounts import Accounts
from ragspan.judges.llm.breaker import CircuitBreaker
from ragspan.judges.llm.cache_warming import CacheWarming
from ragspan.judges.llm.case import Case, lay_out, share_shown
from ragspan.judges.llm.fencing import clean
from ragspan.judges.llm.once import Once
from ragspan.judges.llm.passage_sentences import LONGEST_LINE, list_sentences, split_passage, used_share
from ragspan.judges.prices import Price
from ragspan.records import RagRecord


class Numbered(Protocol):
    @property
    def number(self) -> int: ...


_T = TypeVar("_T")
_Finding = TypeVar("_Finding", bound=Numbered)


class LLMJudge:
    """Answers the metrics' questions through a language model.

    Each question is one request, and votes and ratings are the choices of one request. What comes back invalid or not
    at all is asked for once more, only that; what is then still missing is left out. Claims, and verdicts on passages,
    which several metrics need, are asked for once a record, also by metrics that ask at the same time.

    Each request is sent only if the allowance of whoever asks suffices (see `ragspan.judges.allowance`), and unless the
    service has been failing: a circuit breaker then lets requests fail at once for a while (`judge_unavailable`).

    Where a record's texts are long enough for a provider's prompt cache to matter, the first request about them is sent
    ahead, and the others when it has been answered, or after ten seconds. The first is the one that another waits for:
    with faithfulness among the metrics a record takes no longer for it.

    Passages that do not fit are cut to their beginnings, each to the same length, so that short ones stay whole; the
    explanations then say how much the judge saw.

    Args:
        client: reaches the model.
        name: names the judge on scores, such as "openai:gpt-4o-mini".
        temperature: for several votes or ratings, which have to be independent samples; a single one, claims and
            verdicts are asked for at 0.
        max_context_chars: characters of all passages together that a request may hold, their fences included. Of so many
            passages that not even their fences fit, the last are left out, and what is asked of each does not apply. For
            `ChunkUtilization` a request lists the beginnings of sentences besides, in no more characters.
        max_response_chars: characters of the response that a request may hold, and of the question.
        price: what the model costs; None leaves `Usage.usd` unknown, and a budget in dollars cannot be kept.

    Raises:
        ConfigurationError: an argument is wrong; the message names it.
    """

    prompt_version = prompts.PROMPT_VERSION

    def __init__(
        self,
        client: ChatClient,
        *,
        name: str,
        temperature: float = 0.7,
        max_context_chars: int = 60_000,
        max_response_chars: int = 20_000,
        price: Price | None = None,
    ) -> None:
        if not 0 <= temperature <= _MAX_TEMPERATURE:
            raise ConfigurationError(
                f"temperature should be a number from 0 to {_MAX_TEMPERATURE}, not {temperature!r}"
            )
        for argument, limit in (("max_context_chars", max_context_chars), ("max_response_chars", max_response_chars)):
            if limit < 1:
                raise ConfigurationError(f"{argument} should be at least 1, not {limit!r}")
        if price is not None and not isinstance(price, Price):
            raise ConfigurationError(f"price should be a Price, such as Price(0.15, 0.60), not {price!r}")
        self.name = name
        self.price = price
        """US dollars for a million tokens; None if it is not known."""
        self._client = client
        self._accounts = Accounts(price)
        self._breaker = CircuitBreaker()
        self._once = Once()
        self._warming = CacheWarming(_LONGEST_WAIT)
        self._temperature = temperature
        self._max_context_chars = max_context_chars
        self._max_response_chars = max_response_chars

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    async def vote_adherence(self, record: RagRecord, votes: int) -> list[Vote]:
        case = self._lay_out(record)
        findings = await self._sample(case, prompts.ADHERENCE, replies.GROUNDING, votes)
        return [
            Vote(grounded=finding.verdict == "grounded", explanation=case.explanation(finding.reasoning))
            for finding in findings
        ]

    async def rate_completeness(self, record: RagRecord, ratings: int) -> list[Rating]:
        case = self._lay_out(record)
        findings = await self._sample(case, prompts.COMPLETENESS, replies.COMPLETENESS, ratings)
        return [Rating(value=finding.value, explanation=case.explanation(finding.reasoning)) for finding in findings]

    async def rate_answer_relevance(self, record: RagRecord, ratings: int) -> list[Rating]:
        case = self._lay_out(record)
        findings = await self._sample(case, prompts.ANSWER_RELEVANCE, replies.ANSWER_RELEVANCE, ratings)
        return [Rating(value=finding.value, explanation=case.explanation(finding.reasoning)) for finding in findings]

    async def extract_claims(self, record: RagRecord) -> list[str]:
        case = self._lay_out(record)

        async def extract() -> list[str]:
            [claims] = await self._sample(case, prompts.CLAIMS, replies.CLAIMS, 1)
            return [claim.strip() for claim in claims if claim.strip()]

        return list(await self._once.ask(case.fence.code, "claims", extract))

    async def verify_claims(self, record: RagRecord, claims: Sequence[str]) -> list[ClaimVerdict]:
        case = self._lay_out(record)
        lines = {number: f"{number}. {' '.join(claim.split())}" for number, claim in enumerate(claims, start=1)}

        def task(numbers: Sequence[int]) -> str:
            quoted = case.fence.quote("claims", "\n".join(lines[number] for number in numbers))
            return prompts.verification(quoted, numbers)

        findings = await self._judge_each(case, task, replies.CLAIM_VERDICTS, len(claims))
        return [
            ClaimVerdict(
                index=number - 1,
                supported=finding.verdict == "supported",
                claim=claims[number - 1],
                explanation=case.explanation(finding.reasoning),
            )
            for number, finding in sorted(findings.items())
        ]

    async def judge_usefulness(self, record: RagRecord) -> list[ContextVerdict]:
        case = self._lay_out(record, each_context=True)

        async def judge() -> list[ContextVerdict]:
            findings = await self._judge_passages(case, prompts.usefulness, replies.PASSAGE_VERDICTS)
            return [
                ContextVerdict(
                    index=number - 1,
                    useful=finding.verdict == "useful",
                    explanation=case.explanation(finding.reasoning),
                )
                for number, finding in findings
            ]

        return list(await self._once.ask(case.fence.code, "usefulness", judge))

    async def rate_context_relevance(self, record: RagRecord) -> list[ContextRating]:
        case = self._lay_out(record, each_context=True)
        findings = await self._judge_passages(case, prompts.context_relevance, replies.PASSAGE_RELEVANCE)
        return [
            ContextRating(
                index=number - 1,
                value=_RELEVANCE[finding.verdict],
                explanation=case.explanation(finding.reasoning),
            )
            for number, finding in findings
        ]

    async def measure_utilization(self, record: RagRecord) -> list[ContextRating]:
        """One rating a context: the share of its characters that stand in sentences which the model finds used."""
        case = self._lay_out(record, each_context=True)
        most = max(self._max_context_chars // (LONGEST_LINE * max(len(case.passages), 1)), 1)
        passages = [split_passage(clean(passage), most) for passage in case.passages]
        quoted = case.fence.quote("sentences", list_sentences(passages))

        def task(numbers: Iterable[int]) -> str:
            return prompts.utilization(quoted, numbers)

        def names_its_sentences(finding: replies.SentencesFinding) -> bool:
            return all(1 <= place <= len(passages[finding.number - 1]) for place in finding.sentences)

        findings = await self._judge_passages(case, task, replies.USED_SENTENCES, is_valid=names_its_sentences)
        return [
            ContextRating(
                index=number - 1,
                value=used_share(passages[number - 1], finding.sentences),
                explanation=case.explanation(finding.reasoning),
            )
            for number, finding in findings
        ]

    def share_read(self, record: RagRecord) -> float:
        """The share of the record's characters that fits the prompts, 0..1; see `max_context_chars`."""
        return share_shown(
            record, max_context_chars=self._max_context_chars, max_response_chars=self._max_response_chars
        )

    def _lay_out(self, record: RagRecord, *, each_context: bool = False) -> Case:
        """The record's case; where each context is asked about, one that holds all of them.

        Raises:
            JudgeError: it cannot hold all.
        """
        case = lay_out(record, max_context_chars=self._max_context_chars, max_response_chars=self._max_response_chars)
        if each_context:
            require_few_contexts(len(record.contexts or ()), len(case.passages))
        return case

    async def _sample(self, case: Case, task: str, form: replies.Form[_T], count: int) -> list[_T]:
        """Up to `count` valid replies to one question, at least one.

        Those that an endpoint did not give in the first request, because it ignores `n` or wrote something else, are
        asked for in single requests side by side.
        """
        temperature = self._temperature if count > 1 else 0.0
        found = await self._ask(case, task, form, n=count, temperature=temperature)
        retries = (
            _or_nothing(self._ask(case, task, form, n=1, temperature=temperature)) for _ in range(count - len(found))
        )
        found += chain.from_iterable(await asyncio.gather(*retries))
        _require_any(found)
        return found[:count]

    async def _judge_passages(
        self,
        case: Case,
        task: Callable[[Sequence[int]], str],
        form: replies.ListForm[_Finding],
        is_valid: Callable[[_Finding], bool] | None = None,
    ) -> list[tuple[int, _Finding]]:
        """The findings on passages by their numbers, in that order."""
        findings = await self._judge_each(case, task, form, len(case.passages), is_valid=is_valid)
        return sorted(findings.items())

    async def _judge_each(
        self,
        case: Case,
        task: Callable[[Sequence[int]], str],
        form: replies.ListForm[_Finding],
        count: int,
        is_valid: Callable[[_Finding], bool] | None = None,
    ) -> dict[int, _Finding]:
        """The first valid finding for each number from 1 to `count`, at least one; the missing are asked for again."""

        async def ask(numbers: Sequence[int]) -> list[_Finding]:
            lists = await self._ask(case, task(numbers), form, n=1, temperature=0.0)
            return [finding for finding in chain.from_iterable(lists) if finding.number in numbers]

        if not count:
            return {}
        everything = range(1, count + 1)
        found = _first_by_number(filter(is_valid or _any, await ask(everything)))
        missing = [number for number in everything if number not in found]
        if missing:
            found |= _first_by_number(filter(is_valid or _any, await _or_nothing(ask(missing))))
        _require_any(found)
        return found

    async def _ask(self, case: Case, task: str, form: replies.AnyForm[_T], *, n: int, temperature: float) -> list[_T]:
        """The valid ones among the replies to a request, which is sent when it is its turn."""
        messages = case.messages(task)
        async with self._turn(case, is_urgent=form.key == replies.CLAIMS.key):
            completions = await self._complete(messages, question=form.key, n=n, temperature=temperature)
        answers = (form.read(completion.text) for completion in completions)
        return [answer for answer in answers if answer is not None]

    def _turn(self, case: Case, *, is_urgent: bool) -> AbstractAsyncContextManager[None]:
        if len(case.material) < _WORTH_CACHING:
            return nullcontext()
        return self._warming.turn(case.fence.code, is_urgent=is_urgent)

    async def _complete(
        self, messages: Sequence[ChatMessage], *, question: str, n: int, temperature: float
    ) -> list[Completion]:
        """Send a request, if the service is well and the allowance suffices, and account for what it took."""
        with self._breaker.watching():
            bill = self._accounts.open(messages, question=question, choices=n)
            try:
                completions = await self._client.complete(
                    messages, schema=replies.REPLY_SCHEMA, n=n, temperature=temperature
                )
            except Exception:
                bill.write_off()
                raise
        bill.settle(completions)
        return completions


async def _or_nothing(asking: Awaitable[list[_T]]) -> list[_T]:
    """What is asked for again, or nothing: a failure then does not cost what is already there."""
    try:
        return await asking
    except JudgeError:
        return []


def _first_by_number(findings: Iterable[_Finding]) -> dict[int, _Finding]:
    first: dict[int, _Finding] = {}
    for finding in findings:
        first.setdefault(finding.number, finding)
    return first


def _any(_finding: object) -> bool:
    return True


def _require_any(found: Sized) -> None:
    if not found:
        raise JudgeError("InvalidVerdict", "no reply of the model was of the form that it was asked for")


_MAX_TEMPERATURE = 2
_WORTH_CACHING = 2000
"""Characters of a record's texts from which on it pays to wait; what comes before them is the same for all records."""
_LONGEST_WAIT = 10.0
"""Seconds that a request waits for the first one about the same record."""
_RELEVANCE = {"full": 1.0, "partial": 0.5, "none": 0.0}
