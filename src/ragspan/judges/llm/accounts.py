"""Keeps account of a judge's requests: what they are expected to take, may take, and took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragspan.judges.base import ChatMessage, Completion
from ragspan.judges.llm.forecast import Forecast
from ragspan.judges.prices import Price
from ragspan.judges.session import Reservation, report_usage, reserve
from ragspan.outcomes import Usage


class Accounts:
    """The accounts of one judge.

    Args:
        price: of its model; None leaves costs unknown, unless the client tells them.
    """

    def __init__(self, price: Price | None) -> None:
        self._price = price
        self._forecast = Forecast()

    async def open(self, messages: Sequence[ChatMessage], *, question: str, choices: int) -> Bill:
        """Set aside what a request is expected to take.

        Raises:
            JudgeError: the allowance does not suffice.
        """
        expected = self.priced(self._forecast.expect(messages, question=question, choices=choices))
        reservation = await reserve(expected)
        return Bill(expected=expected, reservation=reservation, messages=messages, question=question, accounts=self)

    def priced(self, usage: Usage) -> Usage:
        """The usage with its price, where both are known and nobody has put a price on it."""
        if self._price is None or usage.usd is not None or not _tells_tokens(usage):
            return usage
        return replace(usage, usd=self._price.of(usage))

    def learn(self, bill: Bill, used: Usage, choices: int) -> None:
        self._forecast.learn(bill.messages, used, question=bill.question, choices=choices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What one request takes.

    A request that is cancelled is neither settled nor written off: what was set aside counts as spent, because providers
    charge for replies that nobody waits for.
    """

    expected: Usage
    reservation: Reservation
    messages: Sequence[ChatMessage]
    question: str
    accounts: Accounts

    def settle(self, completions: Sequence[Completion]) -> None:
        """Count what the request took, for the usage meter as it was told and for the allowance at least one request."""
        shares = [self.accounts.priced(completion.usage) for completion in completions]
        for share in shares:
            report_usage(share)
        used = sum(shares, Usage())
        self.accounts.learn(self, used, len(completions))
        # Many compatible servers tell no tokens: what was expected is nearer to the truth than none.
        told = used if _tells_tokens(used) else self.expected
        self.reservation.settle(replace(told, requests=max(used.requests, 1)))

    def write_off(self) -> None:
        """The request failed: it counts as a request, and took nothing else."""
        self.reservation.settle(Usage(requests=self.expected.requests, usd=0.0))


def _tells_tokens(usage: Usage) -> bool:
    return usage.input_tokens > 0 or usage.output_tokens > 0
