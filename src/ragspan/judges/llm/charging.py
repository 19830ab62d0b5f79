"""What a request is expected to take, and what it took."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ragspan.exceptions import JudgeError
from ragspan.judges.judge_protocols import ChatMessage, Completion
from ragspan.judges.prices import Price
from ragspan.judges.session import report_usage, reserve
from ragspan.text.limits import SIZE_OF_TOKEN, size_of
from ragspan.usage import Usage


@contextlib.contextmanager
def charging(
    messages: Sequence[ChatMessage], *, choices: int, price: Price | None, tokens: int
) -> Iterator[Callable[[Sequence[Completion]], None]]:
    """Around one request: sets aside what it is expected to take. Call what it yields with the completions.

    A request that fails counts as one request without tokens, unless the endpoint reports what it took. What was set aside for
    a cancelled request stays so: providers charge for its replies.

    Args:
        messages: of the request.
        choices: replies that are asked for, each of about so many `tokens`.
        price: of the model. With None the cost is unknown, unless the client reports it.
        tokens: of one reply.

    Raises:
        JudgeError: the allowance does not suffice.
    """
    input_tokens = sum(size_of(message["content"]) for message in messages) // SIZE_OF_TOKEN + 1
    expected = _priced(Usage(requests=1, input_tokens=input_tokens, output_tokens=choices * tokens), price)
    settle = reserve(expected)

    def charge(completions: Sequence[Completion]) -> None:
        used = sum((_priced(completion.usage, price) for completion in completions), Usage())
        report_usage(used)
        # Many compatible servers report no tokens. What was expected is nearer to the truth than none.
        charged = used if _has_tokens(used) else replace(expected, usd=expected.usd if used.usd is None else used.usd)
        settle(replace(charged, requests=max(used.requests, 1)))

    try:
        yield charge
    except Exception as error:
        used = error.usage if isinstance(error, JudgeError) else None
        if used is not None:
            report_usage(_priced(used, price))
        settle(Usage(requests=1, usd=0.0) if used is None else _priced(used, price))
        raise


def _priced(usage: Usage, price: Price | None) -> Usage:
    is_known = price is None or usage.usd is not None or not _has_tokens(usage)
    return usage if is_known or price is None else replace(usage, usd=price.of(usage))


def _has_tokens(usage: Usage) -> bool:
    return usage.input_tokens > 0 or usage.output_tokens > 0
