"""What models cost, in US dollars for a million tokens.

The table holds OpenAI's chat models that are likely judges, with the prices of standard processing at `PRICES_AS_OF`, or the last ones
for older models. Prices change: if the figure matters, give the judge `price=`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ragspan.arguments import number
from ragspan.usage import Usage

PRICES_AS_OF: Final = "2026-06"
_ROWS: Final = """\
gpt-4o 2.50 10.00 1.25
gpt-4o-2024-05-13 5.00 15.00
gpt-4o-mini 0.15 0.60 0.075
gpt-4.1 2.00 8.00 0.50
gpt-4.1-mini 0.40 1.60 0.10
gpt-4.1-nano 0.10 0.40 0.025
gpt-5 1.25 10.00 0.125
gpt-5-mini 0.25 2.00 0.025
gpt-5-nano 0.05 0.40 0.005
gpt-5.1 1.25 10.00 0.125
gpt-5.2 1.75 14.00 0.175
gpt-5.4 2.50 15.00 0.25
gpt-5.4-mini 0.75 4.50 0.075
gpt-5.4-nano 0.20 1.25 0.02
gpt-5.5 5.00 30.00 0.50
o3 2.00 8.00 0.50
o3-mini 1.10 4.40 0.55
o4-mini 1.10 4.40 0.275
"""
"""Input, output, and input from the cache."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens of a model.

    Raises:
        ConfigurationError: a price is not a number, or below 0.
    """

    input: float
    output: float
    cached_input: float | None = None
    """For input from the provider's prompt cache; with None it costs as much as other input."""

    def __post_init__(self) -> None:
        dollars = number("a number of dollars, 0 or more", lambda value: value >= 0).or_none()
        for name in ("input", "output", "cached_input"):
            dollars.check(f"a price's {name}", getattr(self, name))

    def of(self, usage: Usage) -> float:
        """The cost of this usage in US dollars."""
        cached = min(usage.cached_tokens, usage.input_tokens)
        cached_price = self.input if self.cached_input is None else self.cached_input
        dollars = (usage.input_tokens - cached) * self.input + cached * cached_price + usage.output_tokens * self.output
        return dollars / 1_000_000


PRICES: Final[Mapping[str, Price]] = {
    name: Price(*map(float, amounts)) for name, *amounts in map(str.split, _ROWS.splitlines())
}
"""By the model's name, without a date."""
_HOSTS: Final = ("api.openai.com", ".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
"""Azure's global deployments cost what OpenAI takes; at other hosts, OpenAI's regional ones as well, prices differ."""


def price_of(model: str, host: str | None = None) -> Price | None:
    """The price of one of OpenAI's models at this host, from the table; None if it is not known.

    A dated name such as `gpt-4o-mini-2024-07-18` has the model's price, unless the table has one for the date. A deployment at
    Azure has one if it is named after its model. Without a host it is OpenAI's own.
    """
    host = (host or _HOSTS[0]).lower()
    if host != _HOSTS[0] and not host.endswith(_HOSTS[1:]):
        return None
    return PRICES.get(model) or PRICES.get(re.sub(r"-\d{4}-\d{2}-\d{2}$", "", model))
