"""The judge that asks a language model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Sized
from typing import TypeAlias, TypeVar

from ragspan.arguments import TEXT, WHOLE, between, has_methods, instance, require_async
from ragspan.exceptions import JudgeError
from ragspan.judges.background import MAX_SHOWN, shown_background
from ragspan.judges.judge_protocols import (
    ChatClient,
    ClaimSupport,
    ClaimVerdict,
    ContextRating,
    ContextVerdict,
    Rating,
    Vote,
    require_few_contexts,
)
from ragspan.judges.llm import replies, tasks
from ragspan.judges.llm.breaker import CircuitBreaker
from ragspan.judges.llm.capabilities import EndpointHabits
from ragspan.judges.llm.charging import charging
from ragspan.judges.llm.fencing import clean, overhead
from ragspan.judges.llm.prompt_context import (
    LONGEST_LINE,
    PromptContext,
    fit,
    lay_out,
    list_sentences,
    split_context,
    used_share,
)
from ragspan.judges.prices import Price
from ragspan.judges.session import session_of
from ragspan.records import RagRecord
from ragspan.text.limits import size_of
from ragspan.text.sentences import places_of

_T = TypeVar("_T")
_Read: TypeAlias = "tuple[list[_T], str | None]"
"""The valid answers in the replies to a request, and why a reply has no text."""
_Finding = TypeVar("_Finding", bound=replies.NumberedFinding)


class LLMJudge:
    """Answers the metrics' questions with a language model.

    Each question is one request; votes and ratings are the choices of one request. Invalid and missing answers are asked for
    once more, only these; what is then still missing is left out. Several metrics need the claims and the verdicts on
    contexts: these are asked for once a record, also if the metrics ask at the same time.

    A request is sent only if the metric's allowance suffices (see `ragspan.judges.session`). If the service keeps failing, a
    circuit breaker lets requests fail at once for a while (`judge_unavailable`).

    If a record's texts are long enough for a provider's prompt cache, the first request about them goes ahead. The others
    follow when it is answered, or after ten seconds. The request for the claims goes first, because the request for the
    verdicts on them has to wait for it anyway. So a record with faithfulness among its metrics takes no longer.

    Contexts that do not fit are cut to their beginnings, each to the same length, so that short ones stay whole; the
    explanations then say how much the judge saw.

    Args:
        client: sends the requests to the model.
        name: the judge's name on scores, such as "openai:gpt-4o-mini".
        temperature: for several votes or ratings, which have to be independent samples. A single vote or rating, claims
            and verdicts are asked for at 0.
        max_context_chars: characters of all contexts together in a request, with their fences; of background a fifth of
            that, and at most 8,000. They are characters of English, four a token; one of Chinese or Hindi counts as five, of
            Arabic as three, of Russian as two. If there are so many
            contexts that their fences do not fit, the last ones are left out; questions about each context then do not
            apply. For `ChunkUtilization` a request also lists the beginnings of sentences, in at most as many characters.
        max_response_chars: characters of the response in a request, and of the question.
        price: what the model costs. With None, `Usage.usd` is unknown and a budget in dollars refuses the requests.

    Raises:
        ConfigurationError: an argument is wrong; the message names it.
    """

    prompt_version = tasks.PROMPT_VERSION

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
        _CLIENT.check("client", client)
        require_async("client", client, "complete")
        TEXT.check("name", name)
        _TEMPERATURE.check("temperature", temperature)
        WHOLE.check("max_context_chars", max_context_chars)
        WHOLE.check("max_response_chars", max_response_chars)
        instance(Price, "a Price, such as Price(0.15, 0.60)").or_none().check("price", price)
        self.name = name
        self.price = price
        """US dollars for a million tokens; None if it is not known."""
        self.client = client
        """Sends the requests to the model."""
        self._breaker = CircuitBreaker()
        self._temperature = temperature
        self._max_context_chars = max_context_chars
        self._limits = {"max_context_chars": max_context_chars, "max_response_chars": max_response_chars}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def refused(self) -> Mapping[str, str]:
        """What the endpoint has refused so far: its words, by the parameter."""
        habits = getattr(self.client, "habits", None)
        return dict(habits.refused) if isinstance(habits, EndpointHabits) else {}

    async def vote_adherence(self, record: RagRecord, votes: int) -> list[Vote]:
        task = self._with_background(record, tasks.ADHERENCE)
        findings = await self._sample(record, task, tasks.GROUNDING, votes)
        return [Vote(grounded=one.verdict == "grounded", explanation=one.reasoning) for one in findings]

    async def rate_completeness(self, record: RagRecord, ratings: int) -> list[Rating]:
        return await self._rate(record, tasks.RATE_COMPLETENESS, tasks.COMPLETENESS, ratings)

    async def rate_answer_relevance(self, record: RagRecord, ratings: int) -> list[Rating]:
        return await self._rate(record, tasks.RATE_ANSWER_RELEVANCE, tasks.ANSWER_RELEVANCE, ratings)

    async def extract_claims(self, record: RagRecord) -> list[str]:
        once = self._prompt(record).once
        [claims] = await once.ask("claims", lambda: self._sample(record, tasks.LIST_CLAIMS, tasks.CLAIMS, 1))
        return [claim.strip() for claim in claims if claim.strip()]

    async def verify_claims(self, record: RagRecord, claims: Sequence[str]) -> list[ClaimVerdict]:
        fence = self._prompt(record).fence

        def task(numbers: Sequence[int]) -> str:
            asked = tasks.verification(fence.quote("claims", _numbered(claims, numbers)), numbers)
            return self._with_background(record, asked)

        findings = await self._prompt(record).once.ask(
            f"verdicts on {claims!r}",
            lambda: self._judge_each(record, task, tasks.CLAIM_VERDICTS, len(claims)),
        )
        return [
            ClaimVerdict(
                index=one.index,
                verdict=one.verdict,
                claim=claims[one.index],
                explanation=one.reasoning,
            )
            for one in findings
        ]

    async def find_support(
        self, record: RagRecord, claims: Sequence[str] | None, documents: Sequence[str]
    ) -> list[ClaimSupport]:
        """Ask in one request, and not again for what is missing. Documents get half of the room that the contexts have."""
        prompt = self._prompt(record)
        if claims is None:
            response = record.response or ""
            claims = [response[start:end] for start, end in places_of(response)]
        claims, shown = claims[:_CLAIMS_SOUGHT], fit(documents, overhead("document 10"), self._max_context_chars // 2)
        if not claims:
            return []
        numbers = range(1, len(claims) + 1)
        quoted = [prompt.fence.quote(f"document {number}", text) for number, text in enumerate(shown, start=1)]
        statements = prompt.fence.quote("statements", _numbered(claims, numbers))
        task = tasks.sources("\n\n".join(quoted), statements, numbers)
        found, _ = await self._ask(record, task, tasks.STATEMENT_SOURCES, numbers=numbers)
        is_whole = prompt.remark is None and sum(map(len, shown)) == sum(map(len, documents))
        return [
            ClaimSupport(claim=claims[one.index], document=one.document - 1 if one.verdict == "document" else None)
            for one in _first_of_each(found, numbers)
            if (one.verdict == "document" and 1 <= one.document <= len(shown))
            or (one.verdict == "nothing" and is_whole)
        ]

    async def judge_usefulness(self, record: RagRecord) -> list[ContextVerdict]:
        contexts = self._all_contexts(record)
        findings = await self._prompt(record).once.ask(
            "usefulness",
            lambda: self._judge_each(record, tasks.usefulness, tasks.CONTEXT_VERDICTS, len(contexts)),
        )
        return [
            ContextVerdict(index=one.index, useful=one.verdict == "useful", explanation=one.reasoning)
            for one in findings
        ]

    async def rate_context_relevance(self, record: RagRecord) -> list[ContextRating]:
        count = len(self._all_contexts(record))
        findings = await self._judge_each(record, tasks.context_relevance, tasks.CONTEXT_RELEVANCE, count)
        return [
            ContextRating(index=one.index, value=_RELEVANCE[one.verdict], explanation=one.reasoning) for one in findings
        ]

    async def measure_utilization(self, record: RagRecord) -> list[ContextRating]:
        """One rating a context: the share of its characters in the sentences that the model finds used."""
        shown = self._all_contexts(record)
        most = max(self._max_context_chars // (LONGEST_LINE * max(len(shown), 1)), 1)
        contexts = [split_context(clean(text), most) for text in shown]
        quoted = self._prompt(record).fence.quote("sentences", list_sentences(contexts))

        def task(numbers: Sequence[int]) -> str:
            return tasks.utilization(quoted, numbers)

        def names_its_sentences(finding: tasks.SentencesFinding) -> bool:
            return all(1 <= place <= len(contexts[finding.index]) for place in finding.sentences)

        findings = await self._judge_each(
            record, task, tasks.USED_SENTENCES, len(contexts), is_valid=names_its_sentences
        )
        return [
            ContextRating(
                index=one.index, value=used_share(contexts[one.index], one.sentences), explanation=one.reasoning
            )
            for one in findings
        ]

    def share_read(self, record: RagRecord) -> float:
        """The share of the record's characters that fits the prompts, 0..1; see `max_context_chars`."""
        return self._prompt(record).share_shown

    def _prompt(self, record: RagRecord) -> PromptContext:
        """What all prompts about the record begin with. Each event loop has its own."""
        key = (self, asyncio.get_running_loop())
        return session_of(record).get_or_make(key, lambda: lay_out(record, **self._limits))

    def _with_background(self, record: RagRecord, task: str) -> str:
        """The task with the record's background before it, if it has any: the common beginning of all requests stays."""
        whole = "".join(one.text for one in record.background)
        most = min(MAX_SHOWN, self._max_context_chars // 5)
        shown = shown_background(record, most * len(whole) // max(size_of(whole), 1))
        if not shown:
            return task
        text = "\n\n".join(f"({one.kind}) {one.text.strip()}" for one in shown)
        return tasks.with_background(self._prompt(record).fence.quote("background", text), task)

    def _all_contexts(self, record: RagRecord) -> Sequence[str]:
        """The shown parts of the contexts, for a question about each of them.

        Raises:
            JudgeError: the prompt cannot hold all contexts.
        """
        shown = self._prompt(record).contexts
        require_few_contexts(len(record.contexts or ()), len(shown))
        return shown

    async def _rate(
        self, record: RagRecord, task: str, form: replies.Form[tasks.Coverage], ratings: int
    ) -> list[Rating]:
        findings = await self._sample(record, task, form, ratings)
        return [Rating(value=one.value, explanation=one.reasoning) for one in findings]

    async def _sample(self, record: RagRecord, task: str, form: replies.Form[_T], count: int) -> list[_T]:
        """Up to `count` valid answers to one question, at least one.

        An endpoint may ignore `n` or write something else. The missing answers are asked for in single requests, side by side.
        """
        temperature = self._temperature if count > 1 else 0.0
        found, problem = await self._ask(record, task, form, n=count, temperature=temperature)
        missing = range(count - len(found))
        retries = [_or_nothing(self._ask(record, task, form, temperature=temperature)) for _ in missing]
        for answers, _ in await asyncio.gather(*retries):
            found += answers
        _require_any(found, problem)
        return found[:count]

    async def _judge_each(
        self,
        record: RagRecord,
        task: Callable[[Sequence[int]], str],
        form: replies.Form[_Finding],
        count: int,
        *,
        is_valid: Callable[[_Finding], bool] = lambda _: True,
    ) -> list[_Finding]:
        """The first valid finding for each number from 1 to `count`, at least one; missing ones are asked for once more."""

        async def ask(numbers: Sequence[int]) -> _Read[_Finding]:
            found, problem = await self._ask(record, task(numbers), form, numbers=numbers)
            return _first_of_each([one for one in found if is_valid(one)], numbers), problem

        if not count:
            return []
        everything = range(1, count + 1)
        found, problem = await ask(everything)
        missing = sorted({*everything} - {finding.number for finding in found})
        if missing:
            more, _ = await _or_nothing(ask(missing))
            found += more
        _require_any(found, problem)
        return sorted(found, key=lambda finding: finding.number)

    async def _ask(
        self,
        record: RagRecord,
        task: str,
        form: replies.Form[_T],
        *,
        n: int = 1,
        temperature: float = 0.0,
        numbers: Sequence[int] | None = None,
    ) -> _Read[_T]:
        """Send a request when it is its turn, if the service is well and the allowance suffices, and read the replies.

        Args:
            record: that the request is about.
            task: follows the material.
            form: of the replies.
            n: replies.
            temperature: of each.
            numbers: of what is judged one by one; see `Form.read`.
        """
        prompt = self._prompt(record)
        messages = prompt.messages(task)
        async with prompt.gate.turn(is_urgent=form is tasks.CLAIMS):
            with self._breaker.watching(), charging(messages, choices=n, price=self.price) as charge:
                completions = await self.client.complete(
                    messages, schema=tasks.REPLY_SCHEMA, n=n, temperature=temperature
                )
                charge(completions)
        answers = [one for each in completions for one in form.read(each.text, prompt.remark, numbers=numbers)]
        problems = (each.problem or form.problem_of(each.text, numbers) for each in completions)
        return answers, None if answers else next(problems, None)


async def _or_nothing(asking: Awaitable[_Read[_T]]) -> _Read[_T]:
    """What is asked for again. A failure does not cost the answers that are already there."""
    try:
        return await asking
    except JudgeError:
        return [], None


def _numbered(texts: Sequence[str], numbers: Iterable[int]) -> str:
    """A line for each text with one of these numbers, which count from 1."""
    return "\n".join(f"{number}. {' '.join(texts[number - 1].split())}" for number in numbers)


def _first_of_each(findings: Iterable[_Finding], numbers: Sequence[int]) -> list[_Finding]:
    """The first finding for each of these numbers, in their order; none for a number that has none."""
    first: dict[int, _Finding] = {}
    for finding in findings:
        first.setdefault(finding.number, finding)
    return [first[number] for number in numbers if number in first]


def _require_any(found: Sized, problem: str | None) -> None:
    if not found:
        raise JudgeError("InvalidVerdict", problem or replies.OTHER_JSON)


_CLIENT = has_methods("a ChatClient, with a method complete() (OpenAIJudge takes a client of openai)", "complete")
_TEMPERATURE = between(0, 2)
_CLAIMS_SOUGHT = 40
"""Claims whose support is looked for in further documents."""
_RELEVANCE = {"full": 1.0, "partial": 0.5, "none": 0.0}
