"""What the requests of a judge are expected to take, may take, and took."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from ragspan.judges.base import ChatMessage, Completion
from ragspan.judges.prices import Price
from ragspan.judges.session import report_usage, reserve
from ragspan.outcomes import Usage

_CHARACTERS_PER_TOKEN = 4.0
"""Of English text, by the tokenizers in use; other scripts have fewer, which the estimator learns."""
_TOKENS_PER_REPLY = 250.0
"""Some sentences of reasoning and a verdict."""
_WEIGHT = 0.2
"""Of the newest observation: the mean of about the last ten."""


class UsageEstimator:
    """Expects what the requests of a judge take.

    It learns the length of replies to each kind of question, the characters that make a token, and whether the client
    sends a request for each choice. Any number of threads may use it: an observation that is lost to a race costs nothing.
    """

    def __init__(self) -> None:
        self._characters_per_token = _CHARACTERS_PER_TOKEN
        self._tokens_per_reply: dict[str, float] = {}
        self._choices_are_requests = False

    def expect(self, messages: Sequence[ChatMessage], *, question: str, choices: int) -> Usage:
        """What a request for so many choices will take; tokens are rounded up."""
        requests = choices if self._choices_are_requests else 1
        prompt = _characters(messages) / self._characters_per_token
        reply = self._tokens_per_reply.get(question, _TOKENS_PER_REPLY)
        return Usage(requests=requests, input_tokens=int(requests * prompt) + 1, output_tokens=int(choices * reply) + 1)

    def learn(self, messages: Sequence[ChatMessage], used: Usage, *, question: str, choices: int) -> None:
        """Take what a request took into account; `choices` is how many replies came."""
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
    """Charges the requests of one judge: to the allowance of whoever asks, and to the usage meter.

    Args:
        price: of its model; None leaves costs unknown, unless the client tells them.
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

        A request that fails counts as a request, and took nothing else. One that is cancelled keeps what was set aside:
        providers charge for replies that nobody waits for.

        Raises:
            JudgeError: the allowance does not suffice, or the request failed.
        """
        expected = self._priced(self._estimator.expect(messages, question=question, choices=choices))
        reservation = reserve(expected)
        try:
            completions = await request()
        except Exception:
            reservation.settle(Usage(requests=expected.requests, usd=0.0))
            raise
        shares = [self._priced(completion.usage) for completion in completions]
        for share in shares:
            report_usage(share)
        used = sum(shares, Usage())
        self._estimator.learn(messages, used, question=question, choices=len(completions))
        # Many compatible servers tell no tokens: what was expected is nearer to the truth than none.
        told = used if _tells_tokens(used) else expected
        reservation.settle(replace(told, requests=max(used.requests, 1)))
        return completions

    def _priced(self, usage: Usage) -> Usage:
        """The usage with its price, where both are known and nobody has put a price on it."""
        if self._price is None or usage.usd is not None or not _tells_tokens(usage):
            return usage
        return replace(usage, usd=self._price.of(usage))


def _tells_tokens(usage: Usage) -> bool:
    return usage.input_tokens > 0 or usage.output_tokens > 0
