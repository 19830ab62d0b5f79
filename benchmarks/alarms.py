"""How often the alarms on scores are false, and how soon they find that answers get worse.

    python benchmarks/alarms.py [DIRECTORY] [--streams 200] [--rows N] [--seed 1] [--quick] [--json FILE]

DIRECTORY holds the sets of human judgements that `agreement.py` reads. The embedded judge scores their answers; streams draw
from these scores at random, for a week to learn from and 30 days after it. Without it they draw from scores of which a half,
a fifth and a few fail. The alarms are those of `docs/grafana/alerts.yaml`, computed every five minutes from the same counts
(`tests/grafana` holds both against each other).

Unchanged traffic comes in four courses: steady; with a day's curve of rate and of difficulty; in bursts; and with each answer
repeated, three times in a row in the mean. One pool more has few failures: most of the failing answers are left out. A table
counts pages a month. For the rises, the share of failing answers is higher from some moment on; a table shows the hours until
the page.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from agreeing.judgements import read_sets
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from ragspan.judges import OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence, Faithfulness
from ragspan.outcomes import Score

Numbers: TypeAlias = "NDArray[np.float64]"

STEP = 5  # minutes between two evaluations
HALF_HOUR, SIX_HOURS, TWELVE_HOURS, DAY, WEEK = (minutes // STEP for minutes in (30, 360, 720, 1440, 7 * 1440))
WINDOWS = {"30m": HALF_HOUR, "6h": SIX_HOURS, "12h": TWELVE_HOURS}
EVIDENCE = 4.0
LEAST_PAST, LEAST_NOW = 200, 20
LEARNING, MONTH = WEEK + TWELVE_HOURS, 30 * DAY
RATES = (5, 20, 50, 200, 1000)
RISES = (0.1, 0.2)
RARE = 0.03
RARELY = 0.1


@dataclass(frozen=True, kw_only=True)
class Pool:
    """What a metric made of the answers that people judged."""

    metric: str
    failed: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Counts of every five minutes."""

    scores: Numbers
    failures: Numbers


def evidence(stream: Stream, window: int) -> Numbers:
    """How far the share of failures in a window is above that of the week before the last twelve hours.

    The signed root of the likelihood ratio, which a normal distribution describes for few scores and rare failures, too;
    divided by its own spread over the past, where that is above 1: bursts and a day's curve spread it.
    """
    scores, failures = _last(stream.scores, window), _last(stream.failures, window)
    past, past_failures = (_before(_last(counts, WEEK), TWELVE_HOURS) for counts in (stream.scores, stream.failures))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip(failures / scores, 1e-9, 1 - 1e-9)
        usual = (past_failures + 1) / (past + 2)
        information = share * np.log(share / usual) + (1 - share) * np.log((1 - share) / (1 - usual))
        pooled = scores * past / (scores + past)
        root = np.sign(share - usual) * np.sqrt(2 * pooled * np.maximum(information, 0))
    known = (scores >= LEAST_NOW) & (past >= LEAST_PAST)
    root = np.where(known, root, np.nan)
    return root / np.maximum(1.0, _spread(root))


def pages(stream: Stream) -> NDArray[np.bool_]:
    """Whether the alarm is on, at every step: the evidence of one of the windows suffices."""
    return np.any([evidence(stream, window) > EVIDENCE for window in WINDOWS.values()], axis=0)


def beginnings(on: NDArray[np.bool_], *, quiet: int = 60 // STEP) -> NDArray[np.int64]:
    """The steps at which a page goes out; one that comes back within an hour is the same page (`keep_firing_for`)."""
    steps = np.flatnonzero(on)
    return steps[np.diff(steps, prepend=-quiet - 2) > quiet + 1]


def _last(counts: Numbers, window: int) -> Numbers:
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    steps = np.arange(1, len(counts) + 1)
    return sums[steps] - sums[np.maximum(steps - window, 0)]


def _before(counts: NDArray[Any], steps: int) -> Numbers:
    return np.concatenate([np.zeros(steps), counts])[: len(counts)]


def _spread(root: Numbers) -> Numbers:
    """The standard deviation over the week before the last twelve hours, of the values that there are."""
    there = np.isfinite(root)
    values = np.where(there, root, 0.0)
    number, total, squares = (
        _before(_last(one, WEEK), TWELVE_HOURS) for one in (there.astype(float), values, values**2)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = squares / number - (total / number) ** 2
    return np.sqrt(np.maximum(np.nan_to_num(variance), 0.0))


# What traffic does.


Course: TypeAlias = Callable[[np.random.Generator, Pool, float, int], Stream]


def steady(random: np.random.Generator, pool: Pool, rate: float, steps: int) -> Stream:
    return _drawn(random, np.full(steps, rate * STEP / 60), np.full(steps, pool.failed.mean()))


def daily(random: np.random.Generator, pool: Pool, rate: float, steps: int) -> Stream:
    """Nine times as much at noon as at midnight; then questions are easier, by six points in all."""
    curve = np.sin(np.arange(steps) * 2 * np.pi / DAY)
    share = np.clip(pool.failed.mean() - 0.03 * curve, 0, 1)
    return _drawn(random, rate * STEP / 60 * (1 + 0.8 * curve), share)


def bursts(random: np.random.Generator, pool: Pool, rate: float, steps: int) -> Stream:
    """Half of the traffic comes in one half hour of ten."""
    at: NDArray[np.bool_] = np.repeat(random.random(steps // HALF_HOUR + 1) < RARELY, HALF_HOUR)[:steps]
    return _drawn(random, rate * STEP / 60 * np.where(at, 5.0, 0.5 / (1 - RARELY)), np.full(steps, pool.failed.mean()))


def repeated(random: np.random.Generator, pool: Pool, rate: float, steps: int) -> Stream:
    """Each answer comes one to many times in a row, three in the mean."""
    groups = random.poisson(rate * STEP / 60 / 3, steps)
    sizes = random.geometric(1 / 3, groups.sum())
    failed = random.choice(pool.failed, groups.sum())
    step: NDArray[np.int64] = np.repeat(np.arange(steps), groups)
    return Stream(
        scores=np.bincount(step, sizes, minlength=steps), failures=np.bincount(step, sizes * failed, minlength=steps)
    )


def _drawn(random: np.random.Generator, rates: Numbers, shares: Numbers) -> Stream:
    scores = np.asarray(random.poisson(rates), dtype=float)
    return Stream(scores=scores, failures=np.asarray(random.binomial(scores.astype(int), shares), dtype=float))


COURSES: dict[str, Course] = {"steady": steady, "day curve": daily, "bursts": bursts, "repeated answers": repeated}


# What is measured.


@dataclass(frozen=True, kw_only=True)
class FalsePages:
    """Pages a month on unchanged traffic."""

    course: str
    metric: str
    rate: float
    pages: float


@dataclass(frozen=True, kw_only=True)
class Delay:
    """Hours until a rise is found."""

    metric: str
    rate: float
    rise: float
    hours: tuple[float, ...]
    """The quartiles and the 90th percentile; infinite beyond three days."""


def false_pages(pools: Sequence[Pool], streams: int, random: np.random.Generator) -> list[FalsePages]:
    found = []
    for (name, course), pool, rate in product(COURSES.items(), pools, RATES):
        made = [course(random, pool, rate, LEARNING + MONTH) for _ in range(streams)]
        sent = sum(len(beginnings(pages(one)[LEARNING:])) for one in made) / streams
        found.append(FalsePages(course=name, metric=pool.metric, rate=rate, pages=sent))
    return found


def delays(pools: Sequence[Pool], streams: int, random: np.random.Generator) -> list[Delay]:
    return [
        Delay(metric=pool.metric, rate=rate, rise=rise, hours=_hours(pool, rate, rise, streams, random))
        for pool in pools
        for rise in RISES
        for rate in (20, 50, 200)
    ]


def _hours(pool: Pool, rate: float, rise: float, streams: int, random: np.random.Generator) -> tuple[float, ...]:
    usual, ahead = pool.failed.mean(), 3 * DAY
    shares = np.concatenate([np.full(LEARNING, usual), np.full(ahead, min(usual + rise, 1.0))])
    waits = []
    for _ in range(streams):
        stream = _drawn(random, np.full(len(shares), rate * STEP / 60), shares)
        found = np.flatnonzero(pages(stream)[LEARNING:])
        waits.append(found[0] * STEP / 60 if len(found) else np.inf)
    return tuple(float(np.percentile(waits, percent, method="lower")) for percent in (25, 50, 75, 90))


async def pools_of(directory: Path, rows: int | None) -> list[Pool]:
    judge = OverlapJudge()
    records = [judgement.record for one in read_sets(directory, rows=rows) for judgement in one.judgements]
    pools = []
    for metric in (ContextAdherence(judge), Faithfulness(judge), Completeness(judge)):
        outcomes = [await metric.score(record) for record in records]
        labels = [outcome.label for outcome in outcomes if isinstance(outcome, Score) and outcome.label]
        pools.append(Pool(metric=metric.name, failed=np.array([label == "fail" for label in labels])))
    few = int((~pools[0].failed).sum() * RARE / (1 - RARE))
    rare = np.concatenate([pools[0].failed[~pools[0].failed], np.ones(max(few, 1), dtype=bool)])
    return [*pools, Pool(metric=f"{pools[0].metric}, few", failed=rare)]


def made_up() -> list[Pool]:
    shares = {"half": 0.5, "a fifth": 0.2, "few": RARE}
    return [Pool(metric=name, failed=np.arange(100) < 100 * share) for name, share in shares.items()]


def main() -> None:
    arguments = parsed()
    random = np.random.default_rng(arguments.seed)
    pools = asyncio.run(pools_of(arguments.directory, arguments.rows)) if arguments.directory else made_up()
    false = false_pages(pools, arguments.streams, random)
    found = delays(pools, arguments.streams, random)
    show(pools, false, found, arguments.streams)
    if arguments.json:
        report = {"false_pages": [vars(one) for one in false], "delays": [vars(one) for one in found]}
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


def show(pools: Sequence[Pool], false: Sequence[FalsePages], found: Sequence[Delay], streams: int) -> None:
    console = Console(width=None if Console().is_terminal else 120)
    rates = sorted({one.rate for one in false})
    table = Table(title=f"False pages a month and metric; {streams} streams of a month each")
    for column in ("traffic", "metric", *(f"{rate}/h" for rate in rates)):
        table.add_column(column, justify="left" if column in {"traffic", "metric"} else "right")
    shares = {pool.metric: float(pool.failed.mean()) for pool in pools}
    for course in dict.fromkeys(one.course for one in false):
        for metric, share in shares.items():
            row = [one for one in false if (one.course, one.metric) == (course, metric)]
            table.add_row(course, f"{metric}, {share:.0%} fail", *(f"{one.pages:.2f}" for one in row))
    console.print(table)
    table = Table(title="Hours until a rise of failures is found")
    for column in ("metric", "rise", "scores/h", "25 %", "50 %", "75 %", "90 %"):
        table.add_column(column, justify="left" if column == "metric" else "right")
    for one in found:
        table.add_row(one.metric, f"+{one.rise:.0%}", str(one.rate), *(f"{hours:.1f}" for hours in one.hours))
    console.print(table)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How often alarms are false, and how soon they find a rise.")
    parser.add_argument("directory", type=Path, nargs="?", help="sets of human judgements, as NAME.jsonl.gz")
    parser.add_argument("--streams", type=int, default=200, help="of each kind")
    parser.add_argument("--rows", type=int, help="about as many rows of each set")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="4 streams of each kind, 60 rows of each set")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.streams, arguments.rows = 4, arguments.rows or 60
    return arguments


if __name__ == "__main__":
    main()
