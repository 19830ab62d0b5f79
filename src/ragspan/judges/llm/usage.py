"""What the requests of a judge are expected to take, and what they took."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from ragspan.judges.base import ChatMessage, Completion
from ragspan.judges.prices import Price
from ragspan.judges.session import report_usage, reserve
from ragspan.outcomes import Usage

_CHARACTERS_PER_TOKEN = 4.0
"""In English text. Other scripts have fewer, which the estimator learns."""
_TOKENS_PER_REPLY = 250.0
"""Some sentences of reasoning and a verdict."""
_WEIGHT = 0.2
"""Of the newest observation: the mean of about the last ten."""


class UsageEstimator:
    """Estimates what the requests of a judge take.

    It learns the length of the replies to each question, the characters of a token, and whether the client sends a request
    for each choice. Any number of threads may use it: an observation lost in a race does no harm.
    """

    def __init__(self) -> None:
        self._characters_per_token = _CHARACTERS_PER_TOKEN
        self._tokens_per_reply: dict[str, float] = {}
        self._choices_are_requests = False

    def expect(self, messages: Sequence[ChatMessage], *, question: str, choices: int) -> Usage:
        """What a request for so many choices is likely to take; tokens are rounded up."""
        requests = choices if self._choices_are_requests else 1
        prompt = _characters(messages) / self._characters_per_token
        reply = self._tokens_per_reply.get(question, _TOKENS_PER_REPLY)
        return Usage(requests=requests, input_tokens=int(requests * prompt) + 1, output_tokens=int(choices * reply) + 1)

    def learn(self, messages: Sequence[ChatMessage], used: Usage, *, question: str, choices: int) -> None:
        """Learn from what a request took; `choices` is the number of replies."""
        if choices > 1:
            self._choices_are_requests = used.requests > 1
        if used.input_tokens > 0:
            per_token = max(1, used.requests) * _characters(messages) / used.input_tokens
            self._characters_per_token = _moved(self._characters_per_token, per_token)
        if used.output_tokens > 0 and choices > 0:
            known = self._tokens_per_reply.get(question, _TOKENS_PER_REPLY)
            self._tokens_per_reply[question] = _moved(known, used.output_tokens / choices)


def _moved(mean: float, observation: float) -> float:
    return mean + _WEIGHT * (observation - mean)


def _characters(messages: Sequence[ChatMessage]) -> int:
    return sum(len(message["content"]) for message in messages)


class UsageAccount:
    """Charges the requests of one judge to the metric's allowance and usage meter.

    Args:
        price: of the judge's model. With None the cost is unknown, unless the client tells it.
    """

    def __init__(self, price: Price | None) -> None:
        self._price = price
        self._estimator = UsageEstimator()

    async def charge(
        self,
        request: Callable[[], Awaitable[list[Completion]]],
        messages: Sequence[ChatMessage],
        *,
        question: str,
        choices: int,
    ) -> list[Completion]:
        """Set aside what the request is expected to take, make it, and count what it took.

        A request that fails counts as one request without tokens. What was set aside for a cancelled request stays so:
        providers charge for its replies.

        Raises:
            JudgeError: the allowance does not suffice, or the request failed.
        """
        expected = self._priced(self._estimator.expect(messages, question=question, choices=choices))
        settle = reserve(expected)
        try:
            completions = await request()
        except Exception:
            settle(Usage(requests=expected.requests, usd=0.0))
            raise
        shares = [self._priced(completion.usage) for completion in completions]
        for share in shares:
            report_usage(share)
        used = sum(shares, Usage())
        self._estimator.learn(messages, used, question=question, choices=len(completions))
        # Many compatible servers tell no tokens. What was expected is nearer to the truth than none.
        told = used if _tells_tokens(used) else expected
        settle(replace(told, requests=max(used.requests, 1)))
        return completions

    def _priced(self, usage: Usage) -> Usage:
        """The usage with its cost, if the tokens and the price are known and the client has told no cost."""
        if self._price is None or usage.usd is not None or not _tells_tokens(usage):
            return usage
        return replace(usage, usd=self._price.of(usage))


def _tells_tokens(usage: Usage) -> bool:
    return usage.input_tokens > 0 or usage.output_tokens > 0
