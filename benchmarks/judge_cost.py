"""What judging one answer costs: requests and tokens of a language model.

    python benchmarks/judge_cost.py [--quick] [--json FILE] [--passages 5]

An OpenAI-compatible endpoint in a process of its own keeps what it is asked by ragspan's metrics, one answer at a time. Every answer has passages of a
kilobyte that no other has, and five sentences; the endpoint finds them to be five claims, and gives reasons of a usual length.

Tokens are counted by OpenAI's tokenizer where LlamaIndex is installed, which brings its data, else as a quarter of the
characters. A prompt is tools or schema, then the messages. Of a prompt can be cached what it shares, from its beginning
on, with an earlier request about the same answer: "shared" tells that, and "cached by OpenAI" what is left of it by the
rules there, from 1,024 tokens on and in steps of 128. Both take it that the earlier request has been read before the later
one comes. "In common" is what all requests about an answer begin with, in every one of them.

ragspan is asked in both of its modes, with three polls and with one. In the one request reasons are as long as it asks for: fifteen
words for a claim, ten for a context.

The last table is the price of 1,000 such answers with models of `ragspan.judges.openai`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from judging.prompts_sent import Cost, Tokenizer, cost_of, tokenizer
from rich.console import Console
from rich.table import Table
from serving.processes import HOST, running

from ragspan.judges.openai import PRICES, PRICES_AS_OF
from ragspan.judges.session import Price
from ragspan.usage import Usage

ANSWERS, QUICK_ANSWERS = 5, 2
DOLLARS_TARGETS = {"one request": 0.75, "one request, one poll": 0.40}
"""Of what five requests an answer cost with three polls, for all four metrics."""
DOLLARS_BEFORE = (2.00, 2.81)
"""Of 1,000 answers at commit a2e6b255, from the provider's cache and without it."""
TARGET_MODEL = "gpt-4o-mini"
PRICED = ("gpt-5-nano", "gpt-4o-mini", "gpt-5-mini", "gpt-4.1-mini", "gpt-5.4-mini", "gpt-4.1", "gpt-5.4")
"""From the cheapest to the dearest."""

MODES = {
    "one request": "one_request/3",
    "one request, one poll": "one_request/1",
    "thorough": "thorough/3",
    "thorough, one poll": "thorough/1",
}
FOUR = ("context_adherence", "completeness", "context_utilization", "faithfulness")
CONTENDERS = {
    f"{title}: {what}": tuple(f"{name}/{mode}" for name in names)
    for what, names in {"all four metrics": FOUR, "the two default metrics": (FOUR[0], FOUR[3])}.items()
    for title, mode in MODES.items()
}
"""What metrics are called together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What one answer costs a contender, as the mean of a few."""

    contender: str
    answers: int
    requests: float
    prompt_tokens: float
    completion_tokens: float
    common_tokens: float
    cacheable_tokens: float
    cached_tokens: float

    def share(self, tokens: float) -> float:
        return tokens / self.prompt_tokens

    def dollars(self, price: Price, *, answers: int, cached: bool = True) -> float:
        """What so many answers cost at this price."""
        usage = Usage(
            requests=round(self.requests * answers),
            input_tokens=round(self.prompt_tokens * answers),
            output_tokens=round(self.completion_tokens * answers),
            cached_tokens=round(self.cached_tokens * answers) if cached else 0,
        )
        return price.of(usage)


def measured(answers: int, passages: int, tokens: Tokenizer) -> Iterator[Result]:
    with running("judging.overhearing") as endpoint:
        options = ("--base-url", f"http://{HOST}:{endpoint.port}/v1", "--passages", passages)
        with running("judging.one_by_one", *options) as contest:
            for name, metrics in CONTENDERS.items():
                costs = []
                for number in range(answers):
                    contest.tell(number=number, metrics=metrics)
                    contest.read_line()
                    costs.append(cost_of(endpoint.get("/exchanges"), tokens))
                means = {
                    field.name: statistics.fmean(getattr(cost, field.name) for cost in costs) for field in fields(Cost)
                }
                yield Result(contender=name, answers=answers, **means)


def show(results: Sequence[Result], tokens: Tokenizer, passages: int) -> None:
    table = Table(title=f"Judging one answer with {passages} passages of a kilobyte; tokens by {tokens.name}")
    headings = ("metrics", "requests", "prompt", "in common", "shared", "cached by OpenAI", "not cached", "completion")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "metrics" else "right")
    for result in results:
        table.add_row(*cells(result))
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)


def show_prices(results: Sequence[Result]) -> None:
    """What 1,000 answers cost ragspan's metrics, by model, where nothing and where all that can be is read from the cache."""
    modes = {title: one for one in results for title in MODES if one.contender == f"{title}: all four metrics"}
    table = Table(
        title=f"Dollars for 1,000 such answers, all four metrics, by the prices of {PRICES_AS_OF}; from a cache / without"
    )
    table.add_column("model")
    for title in modes:
        table.add_column(title, justify="right")
    for model in PRICED:
        dollars = [
            "/".join(f"{one.dollars(PRICES[model], answers=1_000, cached=cached):.2f}" for cached in (True, False))
            for one in modes.values()
        ]
        table.add_row(model, *dollars)
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    for title, target in DOLLARS_TARGETS.items():
        shares = [
            modes[title].dollars(PRICES[TARGET_MODEL], answers=1_000, cached=cached) / before
            for cached, before in zip((True, False), DOLLARS_BEFORE, strict=True)
        ]
        console.print(
            f"{TARGET_MODEL}, {title}: {shares[0]:.2f} of five requests from a cache, {shares[1]:.2f} without; at most {target:.2f}"
        )


def cells(result: Result) -> list[str]:
    shared = (result.common_tokens, result.cacheable_tokens, result.cached_tokens)
    return [
        result.contender,
        f"{result.requests:g}",
        f"{result.prompt_tokens:.0f}",
        *(f"{result.share(count):.1%}" for count in shared),
        f"{result.prompt_tokens - result.cached_tokens:.0f}",
        f"{result.completion_tokens:.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="What judging one answer costs.")
    parser.add_argument("--quick", action="store_true", help="few answers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--passages", type=int, default=5, help="of each answer that a language model judges")
    arguments = parser.parse_args()
    tokens = tokenizer()
    answers = QUICK_ANSWERS if arguments.quick else ANSWERS
    results = list(measured(answers, arguments.passages, tokens))
    show(results, tokens, arguments.passages)
    show_prices(results)
    if arguments.json:
        report = {
            "tokens": tokens.name,
            "passages": arguments.passages,
            "targets": DOLLARS_TARGETS,
            "results": [asdict(result) for result in results],
        }
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
