"""What the requests of a judge are expected to take, and what they took."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from ragspan.judges.base import ChatMessage, Completion
from ragspan.judges.prices import Price
from ragspan.judges.session import report_usage, reserve
from ragspan.outcomes import Usage

_CHARACTERS_PER_TOKEN = 4
"""In English text; other scripts have fewer. What a request took replaces the estimate as soon as it is answered."""
_TOKENS_PER_REPLY = 250
"""Some sentences of reasoning and a verdict."""


def expected_usage(messages: Sequence[ChatMessage], *, choices: int) -> Usage:
    """What a request for so many choices is likely to take; tokens are rounded up."""
    characters = sum(len(message["content"]) for message in messages)
    input_tokens = characters // _CHARACTERS_PER_TOKEN + 1
    return Usage(requests=1, input_tokens=input_tokens, output_tokens=choices * _TOKENS_PER_REPLY)


class UsageAccount:
    """Charges the requests of one judge to the metric's allowance and usage meter.

    Args:
        price: of the judge's model. With None the cost is unknown, unless the client tells it.
    """

    def __init__(self, price: Price | None) -> None:
        self._price = price

    async def charge(
        self,
        request: Callable[[], Awaitable[list[Completion]]],
        messages: Sequence[ChatMessage],
        *,
        choices: int,
    ) -> list[Completion]:
        """Set aside what the request is expected to take, make it, and count what it took.

        A request that fails counts as one request without tokens. What was set aside for a cancelled request stays so:
        providers charge for its replies.

        Raises:
            JudgeError: the allowance does not suffice, or the request failed.
        """
        expected = self._priced(expected_usage(messages, choices=choices))
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
