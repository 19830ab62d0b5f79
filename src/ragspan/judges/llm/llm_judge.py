"""The judge that asks a language model."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from ragspan.arguments import TEXT, WHOLE, between, has_methods, instance, one_of
from ragspan.config import JudgeMode
from ragspan.exceptions import JudgeError
from ragspan.judges.background import MAX_SHOWN, shown_background
from ragspan.judges.judge_protocols import (
    ChatClient,
    ChatMessage,
    ClaimVerdict,
    Completion,
    ContextRating,
    ItemQuestion,
    ItemVerdict,
    Rating,
    Vote,
)
from ragspan.judges.llm import parts
from ragspan.judges.llm.asking import Question, Wanted, ask, majority
from ragspan.judges.llm.capabilities import EndpointCapabilities
from ragspan.judges.llm.parts import JudgedClaim, JudgedClaims
from ragspan.judges.llm.prompt import Prompt, lay_out
from ragspan.judges.llm.replies import OTHER_JSON
from ragspan.judges.llm.requests import CircuitBreaker, charging
from ragspan.judges.session import Price, session_of
from ragspan.records import RagRecord

_CLIENT = has_methods("a ChatClient, with a method complete() (OpenAIJudge takes a client of openai)", "complete")
_LEAST_RECENT, _MOST_RECENT = 3, 60
_LEAST_ALIKE = 0.6
_VALUES: Final = {"useful": 1.0, "not_useful": 0.0, "full": 1.0, "partial": 0.5, "none": 0.0}
_POLLED: Final[Mapping[str, str]] = {
    "vote_adherence": "grounding",
    "rate_completeness": "completeness",
    "rate_answer_relevance": "answer_relevance",
}
_PARTS: Final[Mapping[str, str]] = {
    **_POLLED,
    "judge_usefulness": "context_verdicts",
    "rate_context_relevance": "context_relevance",
    "measure_utilization": "context_use",
    "verify_claims": "judged_claims",
}
"""The part of a reply by the judge's method that it answers. Who wants claims alone gets them with their verdicts."""


class LLMJudge:
    """Answers the metrics' questions with a language model.

    Who calls whom: a record's metrics tell the session what they will ask; with the first question the judge asks the model for all of
    it in one request, a part of the reply for each, and the other metrics find their answers there. The request's choices are the votes
    and ratings, and so many opinions on each claim and context; the majority's counts. An endpoint without choices gets a short request
    for each further vote and rating. The claims from the sixteenth on take a second request, with one opinion on each. Invalid and
    missing answers are asked for once more, only these; what is then still missing is left out.

    With `mode="thorough"` each part is a request of its own, of which the first goes ahead, so that a provider's cache serves what the
    others begin with. If the service keeps failing, a circuit breaker lets requests fail at once for a while (`judge_unavailable`).

    Contexts that do not fit are cut to their beginnings, each to the same length, so that short ones stay whole; `details["read"]` of the
    score says how much the judge saw.

    Args:
        client: sends the requests to the model.
        name: the judge's name on scores, such as "openai:gpt-4o-mini".
        temperature: for several votes or ratings, which have to be independent samples; else requests have 0.
        max_context_chars: characters of all contexts together in a request; of background a fifth of that, and at most 8,000; of the
            response and the question 20,000 each. They are characters of English, four a token; one of Chinese or Hindi counts as five.
        mode: `"one_request"` or `"thorough"`.
        price: what the model costs. With None, `Usage.usd` is unknown and a budget in dollars refuses the requests.

    Raises:
        ConfigurationError: an argument is wrong; the message names it.
    """

    answers_together = True
    """Metrics tell the session beforehand what they will ask."""

    def __init__(
        self,
        client: ChatClient,
        *,
        name: str,
        temperature: float = 0.7,
        max_context_chars: int = 60_000,
        mode: JudgeMode = "one_request",
        price: Price | None = None,
    ) -> None:
        _CLIENT.check("client", client)
        TEXT.check("name", name)
        between(0, 2).check("temperature", temperature)
        WHOLE.check("max_context_chars", max_context_chars)
        one_of("one_request", "thorough").check("mode", mode)
        instance(Price, "a Price, such as Price(0.15, 0.60)").or_none().check("price", price)
        self.name = name
        self.price = price
        """US dollars for a million tokens; None if it is not known."""
        self.client = client
        """Sends the requests to the model."""
        self.prompt_version = parts.PROMPT_VERSION if mode == "one_request" else f"{parts.PROMPT_VERSION}-{mode}"
        self._is_thorough = mode == "thorough"
        self._breaker = CircuitBreaker()
        self._recent = deque[bool](maxlen=_MOST_RECENT)
        """Of the last votes, whether the first reply could not be read."""
        self._temperature = temperature
        self._max_context_chars = max_context_chars

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    async def vote_adherence(self, record: RagRecord, votes: int) -> list[Vote]:
        question = await self._answered(record, "vote_adherence", votes)
        unread = [poll.unread > 0 for poll in question.polls]
        self._recent.extend(unread if votes == 1 or not all(unread) else ())  # all at once: that is of one reply
        found = question.polled()
        if len(self._recent) >= _LEAST_RECENT and 4 * sum(self._recent) >= len(self._recent):
            # Where only one of the verdicts can be read, the votes that are there say nothing.
            message = f"{sum(self._recent)} of the judge's last {len(self._recent)} votes could not be read at once"
            raise JudgeError("InvalidVerdict", f"{message}: {question.problem or OTHER_JSON}")
        return [Vote(grounded=one.verdict == "grounded", explanation=one.reasoning) for one in found[:votes]]

    async def rate_completeness(self, record: RagRecord, ratings: int) -> list[Rating]:
        return await self._ratings(record, "rate_completeness", ratings)

    async def rate_answer_relevance(self, record: RagRecord, ratings: int) -> list[Rating]:
        return await self._ratings(record, "rate_answer_relevance", ratings)

    async def _ratings(self, record: RagRecord, name: str, wanted: int) -> list[Rating]:
        found = (await self._answered(record, name, wanted)).polled()
        return [Rating(value=one.value, explanation=one.reasoning) for one in found[:wanted]]

    async def extract_claims(self, record: RagRecord) -> list[str]:
        prompt, first = self._prompt(record), await self._answered(record, "verify_claims", 1)
        asked = [first]
        if first.found and first.found[0].more:
            listed = prompt.quote("claims", "\n".join(one.claim for one in first.found[0].claims))
            asking = partial(self._ask, record, prompt, {"verify_claims": 1}, listed)
            asked += (await prompt.once.ask("more claims", asking)).values()
        for question in asked:
            for one in merged_claims(question.polled()):
                prompt.claims.setdefault(one.claim, one)
        return list(prompt.claims)

    async def verify_claims(self, record: RagRecord, claims: Sequence[str]) -> list[ClaimVerdict]:
        judged = self._prompt(record).claims
        found: list[tuple[int, Any]] = [(index, judged.get(claim)) for index, claim in enumerate(claims)]
        if not all(one for _, one in found):
            menu = ("supported", "unsupported", "unsure")
            own = ItemQuestion(key="claim_verdicts", about="", verdicts=menu, items=tuple(claims))
            found = (await self._answered(record, own.key, own)).numbered()
        return [
            ClaimVerdict(index=index, verdict=one.verdict, claim=claims[index], explanation=one.reasoning)
            for index, one in found
        ]

    async def judge_usefulness(self, record: RagRecord) -> list[ContextRating]:
        return await self._rated(record, "judge_usefulness")

    async def rate_context_relevance(self, record: RagRecord) -> list[ContextRating]:
        return await self._rated(record, "rate_context_relevance")

    async def measure_utilization(self, record: RagRecord) -> list[ContextRating]:
        """One rating a context: the share of its text that the response uses, as the model estimates it."""
        return await self._rated(record, "measure_utilization")

    async def judge_items(self, record: RagRecord, question: ItemQuestion) -> list[ItemVerdict]:
        found = (await self._answered(record, question.key, question)).numbered()
        return [ItemVerdict(index=index, verdict=one.verdict, explanation=one.reasoning) for index, one in found]

    async def _rated(self, record: RagRecord, name: str) -> list[ContextRating]:
        found = (await self._answered(record, name, 1)).numbered()
        values = (one.value if isinstance(one, parts.NumberedValue) else _VALUES[one.verdict] for _, one in found)
        return [
            ContextRating(index=index, value=value, explanation=one.reasoning)
            for (index, one), value in zip(found, values, strict=True)
        ]

    def share_read(self, record: RagRecord) -> float:
        """The share of the record's characters that fits the prompts, 0..1; see `max_context_chars`."""
        return self._prompt(record).share_shown

    # What is asked ----------------------------------------------------------------------------------------------------

    def _prompt(self, record: RagRecord) -> Prompt:
        """What all requests about the record begin with. Each event loop has its own."""
        key = (self, asyncio.get_running_loop())
        return session_of(record).get_or_make(key, lambda: lay_out(record, self._max_context_chars))

    async def _answered(self, record: RagRecord, name: str, wanted: Any) -> Question:
        """What the model says to a question: with all others that the record's metrics ask, or else by itself."""
        prompt = self._prompt(record)
        if prompt.expected is None:
            for _ in range(2):  # until metrics that begin together have all said what they will ask
                await asyncio.sleep(0)
        if prompt.expected is None:  # what is asked later is asked by itself
            told = session_of(record).expected(self).items()
            prompt.expected = {"verify_claims" if one == "extract_claims" else one: count for one, count in told}
        expected = prompt.expected
        is_expected = name in expected and (name not in _POLLED or expected[name] >= wanted)
        asked = dict(expected) if is_expected and not self._is_thorough else {name: wanted}
        found = await prompt.once.ask(tuple(asked.items()), partial(self._ask, record, prompt, asked))
        key = _PARTS.get(name, name)
        return found[key] if key in found else _question(prompt, name, wanted)

    async def _ask(
        self, record: RagRecord, prompt: Prompt, asked: Mapping[str, Any], listed: str = ""
    ) -> dict[str, Question]:
        """Ask all of it in one request; the answers by their parts. The claims that are listed are judged already."""
        questions = _questions(prompt, asked)
        if not questions:
            return {}
        guide = questions if not self._is_thorough else _questions(prompt, {**(prompt.expected or {}), **asked})
        polls = max(one.wanted for one in questions)
        takes = getattr(self.client, "capabilities", None)
        gives_choices = takes.takes("n") if isinstance(takes, EndpointCapabilities) else True
        send = partial(
            self._send, record, prompt, tuple(one.part for one in guide), is_sampled=polls > 1, listed=listed
        )
        await ask(questions, send, choices=polls if gives_choices else 1)
        return {one.part.key: one for one in questions}

    async def _send(
        self,
        record: RagRecord,
        prompt: Prompt,
        guide: tuple[parts.Part, ...],
        wanted: Wanted,
        choices: int,
        *,
        is_sampled: bool,
        listed: str,
    ) -> list[Completion]:
        """Send a request, if the service is well and the allowance suffices."""
        asked = [(question.part, numbers) for question, numbers in wanted]
        background = ""
        if record.background and any(part.takes_background for part, _ in asked):
            shown = shown_background(record, min(MAX_SHOWN, self._max_context_chars // 5))
            background = prompt.quote("background", "\n\n".join(f"({one.kind}) {one.text.strip()}" for one in shown))
        blocks = [question.quoted for question, _ in wanted if question.quoted]
        task = parts.task_of(asked, blocks, background=background, listed=listed)
        messages: list[ChatMessage] = [
            {"role": "system", "content": parts.rules_for(guide)},
            {"role": "user", "content": f"{prompt.material}\n\n{task}"},
        ]
        schema = parts.schema_of(guide, together=False) if self._is_thorough else parts.schema_of(p for p, _ in asked)
        tokens = sum(part.tokens * max(len(numbers), 1) for part, numbers in asked)

        async def post() -> list[Completion]:
            with (
                self._breaker.watching(),
                charging(messages, choices=choices, price=self.price, tokens=tokens) as charge,
            ):
                temperature = self._temperature if is_sampled else 0.0
                completions = await self.client.complete(messages, schema=schema, n=choices, temperature=temperature)
                charge(completions)
            return completions

        async with prompt.first:
            if self._is_thorough and not prompt.is_cached:
                completions = await post()
                prompt.is_cached = True
                return completions
        return await post()


def _questions(prompt: Prompt, asked: Mapping[str, Any]) -> list[Question]:
    """In the order of the reply, without what has nothing to ask about. What metrics bring comes before what is judged as a whole."""
    order = {key: float(place) for place, key in enumerate(parts.PARTS)}
    made = (_question(prompt, name, wanted) for name, wanted in asked.items())
    return sorted(
        (one for one in made if one.numbers or not one.part.is_list),
        key=lambda one: order.get(one.part.key, order["completeness"] - 0.5),
    )


def _question(prompt: Prompt, name: str, wanted: Any) -> Question:
    """The question of a metric, by the name of the judge's method or, where the metric brings it, by its key."""
    if isinstance(wanted, ItemQuestion):
        part = parts.PARTS.get(name) or parts.listed_part(name, wanted.about, *wanted.verdicts, tokens=50)
        lines = [f"{number}. {' '.join(item.split())}" for number, item in enumerate(wanted.items, start=1)]
        return Question(part=part, numbers=range(1, len(lines) + 1), quoted=prompt.quote(name, "\n".join(lines)))
    part = parts.PARTS[_PARTS[name]]
    if part.is_list:
        return Question(part=part, numbers=range(1, prompt.contexts + 1))
    return Question(part=part, wanted=wanted)


def merged_claims(opinions: Sequence[JudgedClaims]) -> list[JudgedClaim]:
    """The claims of the first opinion, each with the verdict of the majority of those that have it; a tie is `unsure`."""
    first, *others = opinions
    merged: dict[str, JudgedClaim] = {}
    for one in first.claims:
        if claim := one.claim.strip():
            same = [one, *filter(None, (_same_claim(one.claim, other.claims) for other in others))]
            found = majority(same, tie="unsure")
            merged.setdefault(claim, JudgedClaim(claim=claim, reasoning=found.reasoning, verdict=found.verdict))
    return list(merged.values())


def _same_claim(claim: str, others: Sequence[JudgedClaim]) -> JudgedClaim | None:
    """The claim that has most of the same words, and all of the same numbers."""
    words, *own_words = (frozenset(re.findall(r"\w+", text.casefold())) for text in (claim, *(o.claim for o in others)))
    alike = [
        (len(words & own) / len(words | own), -place)
        for place, own in enumerate(own_words)
        if own and not any(word[0].isdigit() for word in words ^ own)
    ]
    share, place = max(alike, default=(0.0, 0))
    return others[-place] if share >= _LEAST_ALIKE else None
