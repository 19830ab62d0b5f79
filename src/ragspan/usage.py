"""What judging costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """The cost of judging: requests to a provider, tokens, and money if the price is known."""

    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    """The part of the input tokens that the provider took from its prompt cache."""
    output_tokens: int = 0
    usd: float | None = None

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            usd=self.usd if other.usd is None else other.usd + (self.usd or 0.0),
        )
