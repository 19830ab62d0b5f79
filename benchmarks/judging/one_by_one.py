"""ragspan in `judge_cost.py`, in a process of its own: it judges an answer whenever it is told to, and by what metrics.

    python -m judging.one_by_one --base-url URL --passages N

It says after each what the values were.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from serving.passages import passages, question
from serving.processes import say

from judging.contest import keep_output_for_the_report
from judging.job import Answer
from judging.overhearing import CLAIMS

Judging: TypeAlias = Callable[[Answer, Sequence[str]], Awaitable[dict[str, float]]]
"""From an answer and the names of metrics to their values; the metrics run side by side."""


def answer(number: int, count: int) -> Answer:
    """The answer of a number, with passages of a kilobyte each that no other has."""
    return Answer(question=question(number), passages=passages(count, seed=number), response=" ".join(CLAIMS))


async def judge_as_told(judging: Judging, count: int) -> None:
    while line := await asyncio.to_thread(sys.stdin.readline):
        told = json.loads(line)
        say(values=await judging(answer(told["number"], count), told["metrics"]))


def main() -> None:
    parser = argparse.ArgumentParser(description="ragspan in judge_cost.py.")
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--passages", type=int, required=True)
    arguments = parser.parse_args()
    keep_output_for_the_report()
    from judging.ragspan_metrics import judging

    say(port=0)
    asyncio.run(judge_as_told(judging(arguments.base_url), arguments.passages))


if __name__ == "__main__":
    main()
