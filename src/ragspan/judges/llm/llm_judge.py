"""The judge that asks a language model."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ragspan.arguments import TEXT, WHOLE, between, choice, has_methods, instance, require_async
from ragspan.config import JudgeMode
from ragspan.exceptions import JudgeError
from ragspan.judges.background import MAX_SHOWN, shown_background
from ragspan.judges.judge_protocols import (
    ChatClient,
    ChatMessage,
    ClaimSupport,
    ClaimVerdict,
    Completion,
    ContextRating,
    ContextVerdict,
    ItemQuestion,
    ItemVerdict,
    Rating,
    Vote,
    require_few_contexts,
)
from ragspan.judges.llm import one_request, replies, tasks
from ragspan.judges.llm.breaker import CircuitBreaker
from ragspan.judges.llm.capabilities import EndpointHabits
from ragspan.judges.llm.charging import TOKENS_PER_REPLY, charging
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
from ragspan.judges.llm.questionnaire import Answers, Question, ask, majority
from ragspan.judges.prices import Price
from ragspan.judges.session import session_of
from ragspan.records import RagRecord
from ragspan.text.limits import size_of
from ragspan.text.sentences import places_of


class LLMJudge:
    """Answers the metrics' questions with a language model.

    All that a record's metrics ask it is one request, whose choices are the votes and ratings, and so many opinions on each claim
    and context; the majority's counts. An endpoint without choices gets a short request for each further vote and rating. From the
    sixteenth claim on there is a second request. Invalid and missing answers are asked for once more, only these; what is then still
    missing is left out.

    With `mode="thorough"` each question is a request of its own: the claims, then the verdicts on them; the usefulness of the
    contexts; the votes; the ratings.

    A request is sent only if the metric's allowance suffices (see `ragspan.judges.session`). If the service keeps failing, a
    circuit breaker lets requests fail at once for a while (`judge_unavailable`).

    If a record's texts are long enough for a provider's prompt cache, the first request about them goes ahead. The others
    follow when it is answered, or after ten seconds.

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
        mode: `"one_request"` or `"thorough"`.
        price: what the model costs. With None, `Usage.usd` is unknown and a budget in dollars refuses the requests.

    Raises:
        ConfigurationError: an argument is wrong; the message names it.
    """

    def __init__(
        self,
        client: ChatClient,
        *,
        name: str,
        temperature: float = 0.7,
        max_context_chars: int = 60_000,
        max_response_chars: int = 20_000,
        mode: JudgeMode = "one_request",
        price: Price | None = None,
    ) -> None:
        _CLIENT.check("client", client)
        require_async("client", client, "complete")
        TEXT.check("name", name)
        _TEMPERATURE.check("temperature", temperature)
        WHOLE.check("max_context_chars", max_context_chars)
        WHOLE.check("max_response_chars", max_response_chars)
        choice("one_request", "thorough").check("mode", mode)
        instance(Price, "a Price, such as Price(0.15, 0.60)").or_none().check("price", price)
        self.name = name
        self.answers_together = mode == "one_request"
        """Whether metrics tell the session beforehand what they will ask."""
        self.price = price
        """US dollars for a million tokens; None if it is not known."""
        self.client = client
        """Sends the requests to the model."""
        self._breaker = CircuitBreaker()
        self._recent = deque[bool](maxlen=_MOST_RECENT)
        """Of the last votes, whether the first reply could not be read."""
        self._temperature = temperature
        self._max_context_chars = max_context_chars
        self._limits = {"max_context_chars": max_context_chars, "max_response_chars": max_response_chars}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def prompt_version(self) -> str:
        return one_request.PROMPT_VERSION if self.answers_together else tasks.PROMPT_VERSION

    @property
    def refused(self) -> Mapping[str, str]:
        """What the endpoint has refused so far: its words, by the parameter."""
        habits = getattr(self.client, "habits", None)
        return dict(habits.refused) if isinstance(habits, EndpointHabits) else {}

    async def vote_adherence(self, record: RagRecord, votes: int) -> list[Vote]:
        answers = await self._answers(record, "vote_adherence", votes)
        self._recent.extend(poll.unread > 0 for poll in answers.polls)
        found = answers.polled()
        if len(self._recent) >= _LEAST_RECENT and 3 * sum(self._recent) >= len(self._recent):
            # Where only one of the verdicts can be read, the votes that are there say nothing.
            message = f"{sum(self._recent)} of the judge's last {len(self._recent)} votes could not be read at once"
            raise JudgeError("InvalidVerdict", f"{message}: {answers.problem or replies.OTHER_JSON}")
        return [
            Vote(grounded=one.verdict == "grounded", explanation=one.reasoning, second_try=second)
            for one, second in found[:votes]
        ]

    async def rate_completeness(self, record: RagRecord, ratings: int) -> list[Rating]:
        return await self._rate(record, "rate_completeness", ratings)

    async def rate_answer_relevance(self, record: RagRecord, ratings: int) -> list[Rating]:
        return await self._rate(record, "rate_answer_relevance", ratings)

    async def extract_claims(self, record: RagRecord) -> list[str]:
        if await self._expects(record, "verify_claims"):
            return [one.claim for one in await self._judged_claims(record)]
        claims, _ = (await self._answers(record, "extract_claims", 1)).polled()[0]
        return [claim.strip() for claim in claims if claim.strip()]

    async def verify_claims(self, record: RagRecord, claims: Sequence[str]) -> list[ClaimVerdict]:
        if await self._expects(record, "verify_claims"):
            judged = {one.claim: one for one in await self._judged_claims(record)}
            if judged.keys() >= set(claims):
                found = [(index, judged[claim]) for index, claim in enumerate(claims)]
                return [
                    ClaimVerdict(index=index, verdict=one.verdict, claim=one.claim, explanation=one.reasoning)
                    for index, one in found
                ]
        return [
            ClaimVerdict(index=one.index, verdict=one.verdict, claim=claims[one.index], explanation=one.reasoning)
            for one in (await self._answers(record, "verify_claims", tuple(claims))).numbered()
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
        task = tasks.sources("\n\n".join(quoted), prompt.fence.quote("statements", _numbered(claims, numbers)), numbers)
        completions = await self._send(prompt, prompt.messages(task), tasks.REPLY_SCHEMA)
        found = {
            one.number: one
            for each in reversed(completions)
            for one in reversed(tasks.STATEMENT_SOURCES.read(each.text, prompt.remark, numbers=numbers))
        }
        is_whole = prompt.remark is None and sum(map(len, shown)) == sum(map(len, documents))
        return [
            ClaimSupport(claim=claims[number - 1], document=one.document - 1 if one.verdict == "document" else None)
            for number, one in sorted(found.items())
            if (one.verdict == "document" and 1 <= one.document <= len(shown))
            or (one.verdict == "nothing" and is_whole)
        ]

    async def judge_usefulness(self, record: RagRecord) -> list[ContextVerdict]:
        self._require_all_contexts(record)
        return [
            ContextVerdict(index=one.index, useful=one.verdict == "useful", explanation=one.reasoning)
            for one in (await self._answers(record, "judge_usefulness", 1)).numbered()
        ]

    async def rate_context_relevance(self, record: RagRecord) -> list[ContextRating]:
        self._require_all_contexts(record)
        return [
            ContextRating(index=one.index, value=_RELEVANCE[one.verdict], explanation=one.reasoning)
            for one in (await self._answers(record, "rate_context_relevance", 1)).numbered()
        ]

    async def measure_utilization(self, record: RagRecord) -> list[ContextRating]:
        """One rating a context: the share of its characters in the sentences that the model finds used."""
        contexts = self._sentences(self._require_all_contexts(record))
        return [
            ContextRating(
                index=one.index, value=used_share(contexts[one.index], one.sentences), explanation=one.reasoning
            )
            for one in (await self._answers(record, "measure_utilization", 1)).numbered()
        ]

    async def judge_items(self, record: RagRecord, question: ItemQuestion) -> list[ItemVerdict]:
        answers = await self._answers(record, question.key, question)
        return [
            ItemVerdict(index=one.number - 1, verdict=one.verdict, explanation=one.reasoning)
            for one in answers.numbered()
        ]

    def share_read(self, record: RagRecord) -> float:
        """The share of the record's characters that fits the prompts, 0..1; see `max_context_chars`."""
        return self._prompt(record).share_shown

    async def _rate(self, record: RagRecord, question: str, ratings: int) -> list[Rating]:
        found = (await self._answers(record, question, ratings)).polled()
        return [
            Rating(value=one.value, explanation=one.reasoning, second_try=second) for one, second in found[:ratings]
        ]

    def _prompt(self, record: RagRecord) -> PromptContext:
        """What all prompts about the record begin with. Each event loop has its own."""
        key = (self, asyncio.get_running_loop())
        return session_of(record).get_or_make(key, lambda: lay_out(record, **self._limits))

    # The questions ----------------------------------------------------------------------------------------------------

    async def _expected(self, record: RagRecord) -> Mapping[str, Any]:
        """What the record's metrics ask this judge, as it is known when they begin; what is asked later is asked by itself."""
        if not self.answers_together:
            return {}
        session = session_of(record)
        asked: list[dict[str, Any]] = session.get_or_make(("together", id(self), asyncio.get_running_loop()), list)
        if not asked:
            for _ in range(_TURNS):  # until metrics that begin together have all said it
                await asyncio.sleep(0)
            asked.append(dict(session.expected(self)))
        return asked[0]

    async def _expects(self, record: RagRecord, question: str) -> bool:
        return question in await self._expected(record)

    async def _answers(self, record: RagRecord, question: str, wanted: Any) -> Answers:
        """What the model says to a question: with all others that the record's metrics ask, or else by itself."""
        expected = await self._expected(record)
        known, once = expected.get(question), self._prompt(record).once
        is_known = known == wanted or (isinstance(known, int) and isinstance(wanted, int) and known >= wanted)
        alone = self._question(record, question, wanted)
        if is_known and len(expected) > 1:
            together = await once.ask("together", lambda: self._ask_together(record, expected))
            # Who asks for votes a second time wants others.
            found = together.pop(alone.form.key, None) if question in _POLLED else together.get(alone.form.key)
            if found is not None:
                return found
        if question in _ON_ITEMS and not alone.numbers:
            return Answers(alone)
        send, remark = partial(self._send_alone, record), self._prompt(record).remark
        asking = partial(ask, [alone], send, choices=self._gives_choices, remark=remark)
        [answers] = await (asking() if question in _POLLED else once.ask((question, wanted), asking))
        return answers

    async def _judged_claims(self, record: RagRecord) -> Sequence[tasks.JudgedClaim]:
        expected = await self._expected(record)
        together = await self._prompt(record).once.ask("together", lambda: self._ask_together(record, expected))
        remark = self._prompt(record).remark
        claims: dict[str, tasks.JudgedClaim] = {}
        for key in (tasks.JUDGED_CLAIMS.key, _REST):
            if key in together:
                opinions = [one for one, _ in together[key].polled()]
                found = merged_claims(opinions, f" [{remark}]" if remark else "")
                for one in found:
                    claims.setdefault(one.claim, one)
        return list(claims.values())

    async def _ask_together(self, record: RagRecord, expected: Mapping[str, Any]) -> dict[str, Answers]:
        """Ask all of it in one request, and in a second one for claims beyond the first ones."""
        names = [name for name in expected if not (name == "extract_claims" and "verify_claims" in expected)]
        if not self._holds_all_contexts(record):
            names = [name for name in names if name not in _ON_CONTEXTS]
        questions = [self._question(record, name, expected[name]) for name in names if name != "verify_claims"]
        if "verify_claims" in expected:
            questions.append(Question(form=tasks.JUDGED_CLAIMS))
        questions = one_request.in_order(questions)
        opinions = max((one.polls for one in questions), default=1)
        asking = partial(ask, choices=self._gives_choices, remark=self._prompt(record).remark, opinions=opinions)
        asked = await asking(questions, partial(self._send_together, record, questions, opinions))
        answers = {each.question.form.key: each for each in asked}
        claims = answers.get(tasks.JUDGED_CLAIMS.key)
        if claims is not None and claims.found and claims.found[0].more:
            listed = self._prompt(record).fence.quote("claims", "\n".join(one.claim for one in claims.found[0].claims))
            send = partial(self._send_together, record, questions, opinions, listed=listed)
            [answers[_REST]] = await asking([claims.question], send)
        return answers

    def _question(self, record: RagRecord, name: str, wanted: Any) -> Question:
        """The question of a metric, by the name of the judge's method or, where the metric brings it, by its key."""
        fence, numbers = self._prompt(record).fence, range(1, len(record.contexts or ()) + 1)
        if isinstance(wanted, ItemQuestion):
            quoted = fence.quote(wanted.key, _numbered(wanted.items, range(1, len(wanted.items) + 1)))
            return Question(
                form=tasks.item_form(wanted.key, wanted.verdicts),
                numbers=range(1, len(wanted.items) + 1),
                task=lambda numbers: tasks.items(wanted.about, quoted, wanted.key, wanted.verdicts, numbers),
                quoted=quoted,
                about=wanted.about,
                menu=wanted.verdicts,
            )
        if name == "verify_claims":
            claims: Sequence[str] = wanted

            def verification(numbers: Sequence[int]) -> str:
                asked = tasks.verification(fence.quote("claims", _numbered(claims, numbers)), numbers)
                return self._with_background(record, asked)

            return Question(form=tasks.CLAIM_VERDICTS, numbers=range(1, len(claims) + 1), task=verification)
        if name == "measure_utilization":
            contexts = self._sentences(self._prompt(record).contexts)
            quoted = fence.quote("sentences", list_sentences(contexts))
            return Question(
                form=tasks.USED_SENTENCES,
                numbers=numbers,
                task=lambda numbers: tasks.utilization(quoted, numbers),
                quoted=quoted,
                is_valid=lambda one: all(1 <= place <= len(contexts[one.index]) for place in one.sentences),
            )
        if name in _ON_CONTEXTS:
            form, words = _ON_CONTEXTS[name]
            return Question(form=form, numbers=numbers, task=words)
        form, text = _ON_THE_RESPONSE[name]
        is_grounding = form is tasks.GROUNDING
        return Question(
            form=form, polls=wanted, task=lambda _: self._with_background(record, text) if is_grounding else text
        )

    def _sentences(self, shown: Sequence[str]) -> list[list[str]]:
        most = max(self._max_context_chars // (LONGEST_LINE * max(len(shown), 1)), 1)
        return [split_context(clean(text), most) for text in shown]

    def _with_background(self, record: RagRecord, task: str) -> str:
        """The task with the record's background before it, if it has any: the common beginning of all requests stays."""
        quoted = self._background(record)
        return tasks.with_background(quoted, task) if quoted else task

    def _background(self, record: RagRecord) -> str:
        whole = "".join(one.text for one in record.background)
        most = min(MAX_SHOWN, self._max_context_chars // 5)
        shown = shown_background(record, most * len(whole) // max(size_of(whole), 1))
        text = "\n\n".join(f"({one.kind}) {one.text.strip()}" for one in shown)
        return self._prompt(record).fence.quote("background", text) if shown else ""

    def _holds_all_contexts(self, record: RagRecord) -> bool:
        return len(self._prompt(record).contexts) == len(record.contexts or ())

    def _require_all_contexts(self, record: RagRecord) -> Sequence[str]:
        """The shown parts of the contexts, for a question about each of them.

        Raises:
            JudgeError: the prompt cannot hold all contexts.
        """
        shown = self._prompt(record).contexts
        require_few_contexts(len(record.contexts or ()), len(shown))
        return shown

    # The requests -----------------------------------------------------------------------------------------------------

    @property
    def _gives_choices(self) -> bool:
        habits = getattr(self.client, "habits", None)
        return habits.capabilities.several_choices if isinstance(habits, EndpointHabits) else True

    async def _send_alone(self, record: RagRecord, questions: Sequence[Question], choices: int) -> list[Completion]:
        [question] = questions
        prompt = self._prompt(record)
        messages = prompt.messages(question.task(question.numbers))
        return await self._send(
            prompt,
            messages,
            tasks.REPLY_SCHEMA,
            choices=choices,
            is_sampled=question.polls > 1,
            is_urgent=question.form is tasks.CLAIMS,
        )

    async def _send_together(
        self,
        record: RagRecord,
        all_questions: Sequence[Question],
        opinions: int,
        questions: Sequence[Question],
        choices: int,
        *,
        listed: str = "",
    ) -> list[Completion]:
        prompt = self._prompt(record)
        sections = [one_request.section_of(question) for question in questions]
        task = one_request.task(questions, listed=listed)
        background = self._background(record) if any(section.takes_background for section in sections) else ""
        if background:
            task = one_request.with_background(background, task)
        claims = min(max(size_of(record.response or "") // _CLAIM_CHARS, 1), one_request.MOST_CLAIMS)
        tokens = sum(
            section.tokens * (len(question.numbers) or (claims if "claims" in question.form.key else 1))
            for section, question in zip(sections, questions, strict=True)
        )
        return await self._send(
            prompt,
            prompt.messages(task, one_request.guide(all_questions)),
            one_request.schema(questions),
            choices=choices,
            is_sampled=opinions > 1,
            tokens=tokens,
        )

    async def _send(
        self,
        prompt: PromptContext,
        messages: Sequence[ChatMessage],
        schema: Mapping[str, Any],
        *,
        choices: int = 1,
        is_sampled: bool = False,
        is_urgent: bool = False,
        tokens: int = TOKENS_PER_REPLY,
    ) -> list[Completion]:
        """Send a request when it is its turn, if the service is well and the allowance suffices."""
        async with prompt.gate.turn(is_urgent=is_urgent):
            with (
                self._breaker.watching(),
                charging(messages, choices=choices, price=self.price, tokens=tokens) as charge,
            ):
                completions = await self.client.complete(
                    messages, schema=schema, n=choices, temperature=self._temperature if is_sampled else 0.0
                )
                charge(completions)
        return completions


def merged_claims(opinions: Sequence[tasks.JudgedClaims], remark: str = "") -> list[tasks.JudgedClaim]:
    """The claims of the first opinion, each with the verdict of the majority of those that have it; a tie is `unsure`."""
    first, *others = opinions
    merged: dict[str, tasks.JudgedClaim] = {}
    for one in first.claims:
        if claim := one.claim.strip():
            same = [one, *filter(None, (_same_claim(one.claim, other.claims) for other in others))]
            found = majority(same, tie="unsure")
            reasoning = f"{found.reasoning}{remark}"
            merged.setdefault(claim, tasks.JudgedClaim(claim=claim, reasoning=reasoning, verdict=found.verdict))
    return list(merged.values())


def _same_claim(claim: str, others: Sequence[tasks.JudgedClaim]) -> tasks.JudgedClaim | None:
    """The claim that has most of the same words, and all of the same numbers."""
    words = _words(claim)
    alike = [
        (len(words & own) / len(words | own), -place)
        for place, other in enumerate(others)
        if (own := _words(other.claim)) and _numbers(own) == _numbers(words)
    ]
    share, place = max(alike, default=(0.0, 0))
    return others[-place] if share >= _LEAST_ALIKE else None


def _words(claim: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", claim.casefold()))


def _numbers(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word for word in words if word[0].isdigit())


def _numbered(texts: Sequence[str], numbers: Iterable[int]) -> str:
    """A line for each text with one of these numbers, which count from 1."""
    return "\n".join(f"{number}. {' '.join(texts[number - 1].split())}" for number in numbers)


_CLIENT = has_methods("a ChatClient, with a method complete() (OpenAIJudge takes a client of openai)", "complete")
_TEMPERATURE = between(0, 2)
_CLAIMS_SOUGHT = 40
"""Claims whose support is looked for in further documents."""
_CLAIM_CHARS = 80
_LEAST_RECENT, _MOST_RECENT = 9, 60
_LEAST_ALIKE = 0.6
_REST = "claims beyond the first ones"
_TURNS = 2
_RELEVANCE: Final = {"full": 1.0, "partial": 0.5, "none": 0.0}
_ON_CONTEXTS: Final[Mapping[str, tuple[Any, Callable[[Sequence[int]], str]]]] = {
    "judge_usefulness": (tasks.CONTEXT_VERDICTS, tasks.usefulness),
    "rate_context_relevance": (tasks.CONTEXT_RELEVANCE, tasks.context_relevance),
    "measure_utilization": (tasks.USED_SENTENCES, lambda _: ""),
}
_POLLED: Final = frozenset({"vote_adherence", "rate_completeness", "rate_answer_relevance"})
_ON_ITEMS: Final = frozenset({"verify_claims", *_ON_CONTEXTS})
_ON_THE_RESPONSE: Final[Mapping[str, tuple[Any, str]]] = {
    "vote_adherence": (tasks.GROUNDING, tasks.ADHERENCE),
    "rate_completeness": (tasks.COMPLETENESS, tasks.RATE_COMPLETENESS),
    "rate_answer_relevance": (tasks.ANSWER_RELEVANCE, tasks.RATE_ANSWER_RELEVANCE),
    "extract_claims": (tasks.CLAIMS, tasks.LIST_CLAIMS),
}
