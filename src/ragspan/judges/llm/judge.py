"""The judge that asks a language model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence, Sized
from itertools import chain
from typing import Protocol, TypeVar

from ragspan.arguments import WHOLE, between, instance
from ragspan.exceptions import JudgeError
from ragspan.judges.base import (
    ChatClient,
    ChatMessage,
    ClaimSupport,
    ClaimVerdict,
    Completion,
    ContextRating,
    ContextVerdict,
    Rating,
    Vote,
    require_few_contexts,
)
from ragspan.judges.llm import prompts, replies
from ragspan.judges.llm.breaker import CircuitBreaker
from ragspan.judges.llm.context_sentences import LONGEST_LINE, list_sentences, split_context, used_share
from ragspan.judges.llm.fencing import clean, overhead
from ragspan.judges.llm.prompt_context import PromptContext, fit, lay_out, share_shown
from ragspan.judges.llm.usage import UsageAccount
from ragspan.judges.overlap.sentences import places_of
from ragspan.judges.prices import Price
from ragspan.judges.session import session_of
from ragspan.records import RagRecord


class Numbered(Protocol):
    @property
    def number(self) -> int: ...


_T = TypeVar("_T")
_Finding = TypeVar("_Finding", bound=Numbered)


class LLMJudge:
    """Answers the metrics' questions through a language model.

    Each question is one request, and votes and ratings are the choices of one request. What comes back invalid or not
    at all is asked for once more, only that; what is then still missing is left out. Claims, and verdicts on contexts,
    which several metrics need, are asked for once a record, also by metrics that ask at the same time.

    Each request is sent only if the allowance of whoever asks suffices (see `ragspan.judges.session`), and unless the
    service has been failing: a circuit breaker then lets requests fail at once for a while (`judge_unavailable`).

    Where a record's texts are long enough for a provider's prompt cache to matter, the first request about them is sent
    ahead, and the others when it has been answered, or after ten seconds. The first is the one that another waits for:
    with faithfulness among the metrics a record takes no longer for it.

    Contexts that do not fit are cut to their beginnings, each to the same length, so that short ones stay whole; the
    explanations then say how much the judge saw.

    Args:
        client: reaches the model.
        name: names the judge on scores, such as "openai:gpt-4o-mini".
        temperature: for several votes or ratings, which have to be independent samples; a single one, claims and
            verdicts are asked for at 0.
        max_context_chars: characters of all contexts together that a request may hold, their fences included. Of so many
            contexts that not even their fences fit, the last are left out, and what is asked of each does not apply. For
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
        _TEMPERATURE.check("temperature", temperature)
        WHOLE.check("max_context_chars", max_context_chars)
        WHOLE.check("max_response_chars", max_response_chars)
        instance(Price, "a Price, such as Price(0.15, 0.60)").or_none().check("price", price)
        self.name = name
        self.price = price
        """US dollars for a million tokens; None if it is not known."""
        self._client = client
        self._usage = UsageAccount(price)
        self._breaker = CircuitBreaker()
        self._temperature = temperature
        self._max_context_chars = max_context_chars
        self._max_response_chars = max_response_chars

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    async def vote_adherence(self, record: RagRecord, votes: int) -> list[Vote]:
        prompt = self._prompt(record)
        findings = await self._sample(prompt, prompts.ADHERENCE, replies.GROUNDING, votes)
        return [
            Vote(grounded=finding.verdict == "grounded", explanation=prompt.explanation(finding.reasoning))
            for finding in findings
        ]

    async def rate_completeness(self, record: RagRecord, ratings: int) -> list[Rating]:
        prompt = self._prompt(record)
        findings = await self._sample(prompt, prompts.COMPLETENESS, replies.COMPLETENESS, ratings)
        return [Rating(value=finding.value, explanation=prompt.explanation(finding.reasoning)) for finding in findings]

    async def rate_answer_relevance(self, record: RagRecord, ratings: int) -> list[Rating]:
        prompt = self._prompt(record)
        findings = await self._sample(prompt, prompts.ANSWER_RELEVANCE, replies.ANSWER_RELEVANCE, ratings)
        return [Rating(value=finding.value, explanation=prompt.explanation(finding.reasoning)) for finding in findings]

    async def extract_claims(self, record: RagRecord) -> list[str]:
        prompt = self._prompt(record)

        async def extract() -> list[str]:
            [claims] = await self._sample(prompt, prompts.CLAIMS, replies.CLAIMS, 1)
            return [claim.strip() for claim in claims if claim.strip()]

        return list(await prompt.once.ask("claims", extract))

    async def verify_claims(self, record: RagRecord, claims: Sequence[str]) -> list[ClaimVerdict]:
        prompt = self._prompt(record)
        lines = {number: f"{number}. {' '.join(claim.split())}" for number, claim in enumerate(claims, start=1)}

        def task(numbers: Sequence[int]) -> str:
            quoted = prompt.fence.quote("claims", "\n".join(lines[number] for number in numbers))
            return prompts.verification(quoted, numbers)

        findings = await self._judge_each(prompt, task, replies.CLAIM_VERDICTS, len(claims))
        return [
            ClaimVerdict(
                index=number - 1,
                supported=finding.verdict == "supported",
                claim=claims[number - 1],
                explanation=prompt.explanation(finding.reasoning),
            )
            for number, finding in sorted(findings.items())
        ]

    async def find_support(
        self, record: RagRecord, claims: Sequence[str] | None, documents: Sequence[str]
    ) -> list[ClaimSupport]:
        """In one request, which is not repeated: what it does not settle is left out."""
        prompt = self._prompt(record)
        if claims is None:
            response = record.response or ""
            claims = [response[start:end] for start, end in places_of(response)]
        claims, shown = claims[:_CLAIMS_SOUGHT], self._fitting(documents)
        if not claims:
            return []
        quoted = [prompt.fence.quote(f"document {number}", text) for number, text in enumerate(shown, start=1)]
        lines = "\n".join(f"{number}. {' '.join(claim.split())}" for number, claim in enumerate(claims, start=1))
        numbers = range(1, len(claims) + 1)
        task = prompts.sources("\n\n".join(quoted), prompt.fence.quote("statements", lines), numbers)
        lists = await self._ask(prompt, task, replies.STATEMENT_SOURCES, n=1, temperature=0.0)
        findings = _first_by_number(one for one in chain.from_iterable(lists) if one.number in numbers)
        is_whole = prompt.remark is None and sum(map(len, shown)) == sum(map(len, documents))
        return [
            ClaimSupport(
                claim=claims[number - 1], document=finding.document - 1 if finding.verdict == "document" else None
            )
            for number, finding in sorted(findings.items())
            if (finding.verdict == "document" and 1 <= finding.document <= len(shown))
            or (finding.verdict == "nothing" and is_whole)
        ]

    def _fitting(self, documents: Sequence[str]) -> list[str]:
        """The further documents as far as a request holds them beside the contexts, which take twice the room."""
        room = self._max_context_chars // 2
        kept, limit = fit(list(map(len, documents)), [overhead("document 10")] * len(documents), room)
        return [text[:limit] for text in documents[:kept]]

    async def judge_usefulness(self, record: RagRecord) -> list[ContextVerdict]:
        prompt = self._prompt(record, each_context=True)

        async def judge() -> list[ContextVerdict]:
            findings = await self._judge_contexts(prompt, prompts.usefulness, replies.CONTEXT_VERDICTS)
            return [
                ContextVerdict(
                    index=number - 1,
                    useful=finding.verdict == "useful",
                    explanation=prompt.explanation(finding.reasoning),
                )
                for number, finding in findings
            ]

        return list(await prompt.once.ask("usefulness", judge))

    async def rate_context_relevance(self, record: RagRecord) -> list[ContextRating]:
        prompt = self._prompt(record, each_context=True)
        findings = await self._judge_contexts(prompt, prompts.context_relevance, replies.CONTEXT_RELEVANCE)
        return [
            ContextRating(
                index=number - 1,
                value=_RELEVANCE[finding.verdict],
                explanation=prompt.explanation(finding.reasoning),
            )
            for number, finding in findings
        ]

    async def measure_utilization(self, record: RagRecord) -> list[ContextRating]:
        """One rating a context: the share of its characters that stand in sentences which the model finds used."""
        prompt = self._prompt(record, each_context=True)
        most = max(self._max_context_chars // (LONGEST_LINE * max(len(prompt.contexts), 1)), 1)
        contexts = [split_context(clean(text), most) for text in prompt.contexts]
        quoted = prompt.fence.quote("sentences", list_sentences(contexts))

        def task(numbers: Iterable[int]) -> str:
            return prompts.utilization(quoted, numbers)

        def names_its_sentences(finding: replies.SentencesFinding) -> bool:
            return all(1 <= place <= len(contexts[finding.number - 1]) for place in finding.sentences)

        findings = await self._judge_contexts(prompt, task, replies.USED_SENTENCES, is_valid=names_its_sentences)
        return [
            ContextRating(
                index=number - 1,
                value=used_share(contexts[number - 1], finding.sentences),
                explanation=prompt.explanation(finding.reasoning),
            )
            for number, finding in findings
        ]

    def share_read(self, record: RagRecord) -> float:
        """The share of the record's characters that fits the prompts, 0..1; see `max_context_chars`."""
        return share_shown(
            record, max_context_chars=self._max_context_chars, max_response_chars=self._max_response_chars
        )

    def _prompt(self, record: RagRecord, *, each_context: bool = False) -> PromptContext:
        """What the prompts about the record begin with; where each context is asked about, one that holds all of them.

        Raises:
            JudgeError: it cannot hold all.
        """
        prompt = session_of(record).keep((self, asyncio.get_running_loop()), lambda: self._lay_out(record))
        if each_context:
            require_few_contexts(len(record.contexts or ()), len(prompt.contexts))
        return prompt

    def _lay_out(self, record: RagRecord) -> PromptContext:
        return lay_out(record, max_context_chars=self._max_context_chars, max_response_chars=self._max_response_chars)

    async def _sample(self, prompt: PromptContext, task: str, form: replies.Form[_T], count: int) -> list[_T]:
        """Up to `count` valid replies to one question, at least one.

        Those that an endpoint did not give in the first request, because it ignores `n` or wrote something else, are
        asked for in single requests side by side.
        """
        temperature = self._temperature if count > 1 else 0.0
        found = await self._ask(prompt, task, form, n=count, temperature=temperature)
        retries = (
            _or_nothing(self._ask(prompt, task, form, n=1, temperature=temperature)) for _ in range(count - len(found))
        )
        found += chain.from_iterable(await asyncio.gather(*retries))
        _require_any(found)
        return found[:count]

    async def _judge_contexts(
        self,
        prompt: PromptContext,
        task: Callable[[Sequence[int]], str],
        form: replies.ListForm[_Finding],
        is_valid: Callable[[_Finding], bool] | None = None,
    ) -> list[tuple[int, _Finding]]:
        """The findings on contexts by their numbers, in that order."""
        findings = await self._judge_each(prompt, task, form, len(prompt.contexts), is_valid=is_valid)
        return sorted(findings.items())

    async def _judge_each(
        self,
        prompt: PromptContext,
        task: Callable[[Sequence[int]], str],
        form: replies.ListForm[_Finding],
        count: int,
        is_valid: Callable[[_Finding], bool] | None = None,
    ) -> dict[int, _Finding]:
        """The first valid finding for each number from 1 to `count`, at least one; the missing are asked for again."""

        async def ask(numbers: Sequence[int]) -> list[_Finding]:
            lists = await self._ask(prompt, task(numbers), form, n=1, temperature=0.0)
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

    async def _ask(
        self, prompt: PromptContext, task: str, form: replies.AnyForm[_T], *, n: int, temperature: float
    ) -> list[_T]:
        """The valid ones among the replies to a request, which is sent when it is its turn."""
        messages = prompt.messages(task)
        async with prompt.gate.turn(is_urgent=form.key == replies.CLAIMS.key):
            completions = await self._complete(messages, question=form.key, n=n, temperature=temperature)
        answers = (form.read(completion.text) for completion in completions)
        return [answer for answer in answers if answer is not None]

    async def _complete(
        self, messages: Sequence[ChatMessage], *, question: str, n: int, temperature: float
    ) -> list[Completion]:
        """Send a request, if the service is well and the allowance suffices, and account for what it took."""

        def request() -> Awaitable[list[Completion]]:
            return self._client.complete(messages, schema=replies.REPLY_SCHEMA, n=n, temperature=temperature)

        with self._breaker.watching():
            return await self._usage.charge(request, messages, question=question, choices=n)


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


_TEMPERATURE = between(0, 2)
_CLAIMS_SOUGHT = 40
"""Claims whose support is looked for among further documents."""
_RELEVANCE = {"full": 1.0, "partial": 0.5, "none": 0.0}
