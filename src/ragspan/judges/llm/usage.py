"""What a request of a judge is expected to take, and what it took: both go to the metric's allowance and usage meter."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ragspan.judges.base import ChatMessage, Completion
from ragspan.judges.prices import Price
from ragspan.judges.session import report_usage, reserve
from ragspan.outcomes import Usage

_CHARACTERS_PER_TOKEN = 4
"""In English text; other scripts have fewer. What a request took replaces the estimate as soon as it is answered."""
_TOKENS_PER_REPLY = 250
"""Some sentences of reasoning and a verdict."""


@contextlib.contextmanager
def charging(
    messages: Sequence[ChatMessage], *, choices: int, price: Price | None
) -> Iterator[Callable[[Sequence[Completion]], None]]:
    """Around one request: sets aside what it is expected to take. Call what it yields with the completions.

    A request that fails counts as one request without tokens. What was set aside for a cancelled request stays so:
    providers charge for its replies. If the price is None the cost is unknown, unless the client reports it.

    Raises:
        JudgeError: the allowance does not suffice.
    """
    characters = sum(len(message["content"]) for message in messages)
    input_tokens = characters // _CHARACTERS_PER_TOKEN + 1
    expected = Usage(requests=1, input_tokens=input_tokens, output_tokens=choices * _TOKENS_PER_REPLY)
    expected = _priced(expected, price)
    settle = reserve(expected)

    def charge(completions: Sequence[Completion]) -> None:
        used = sum((_priced(completion.usage, price) for completion in completions), Usage())
        report_usage(used)
        # Many compatible servers report no tokens. What was expected is nearer to the truth than none.
        settle(replace(used if _has_tokens(used) else expected, requests=max(used.requests, 1)))

    try:
        yield charge
    except Exception:
        settle(Usage(requests=1, usd=0.0))
        raise


def _priced(usage: Usage, price: Price | None) -> Usage:
    if price is None or usage.usd is not None or not _has_tokens(usage):
        return usage
    return replace(usage, usd=price.of(usage))


def _has_tokens(usage: Usage) -> bool:
    return usage.input_tokens > 0 or usage.output_tokens > 0
