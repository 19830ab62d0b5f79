"""What a judge sees of the failures that is asked about a share of the answers, and how well the rest is known.

    python benchmarks/share.py [DIRECTORY] [--more FILE.jsonl] [--draws 200] [--rows N] [--seed 1] [--quick] [--json FILE]

DIRECTORY holds the sets of human judgements that `agreement.py` reads, FILE more judgements with the same fields. The embedded
judge scores their answers, and people's labels are what the better judge says. Streams draw from the answers of a set at random,
so many of them failing, and the engine's own threshold chooses which ones the judge is asked about. Without DIRECTORY the doubts
are made up.

- "Seen" is the share of the failing answers that the judge is asked about: by set, within each answering model (the mean over
  models with enough answers of both kinds), and for FILE.
- "Coverage" is how often the 95 % interval around the estimated rate holds the true one: of the answers that were drawn, and of
  the set that they are drawn from. The widths stand beside those of a random share of the same size.
- "Share" is what part of the answers the judge is asked about by the hour, over a day with nine times as much traffic at noon as at
  midnight and more failures at night; in bursts in which three times as many fail; and with a new process every 100 answers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from agreeing.judgements import Judgement, read_file, read_sets
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from ragspan.engine.judge_share_decisions import RANDOM_PART, DoubtThreshold
from ragspan.evaluate.summaries import RateEstimate, Stratum, estimate_rate
from ragspan.judges import OverlapJudge
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.metrics.doubt import doubt_of

SHARES = (0.1, 0.2, 0.3, 0.4)
MAIN_SHARES = (0.2, 0.3)
"""Of which the other tables are."""
BASE_RATES = (0.3, 0.1, 0.05)
COVERED_RATES = (0.3, 0.1, 0.05, 0.02)
COVERED_SHARE = 0.2
SIZES = (1_000, 10_000, 100_000)
STREAM = 2_000
LEAST_OF_A_KIND = 20
REQUESTS_AN_ANSWER = 5
"""With all four metrics: `judge_cost.py`."""
HOURS, AN_HOUR = 24, 1_000
RESTART = 100

Doubts: TypeAlias = "NDArray[np.float64]"
Traffic: TypeAlias = "tuple[Doubts, NDArray[np.bool_]]"
"""The doubt of each answer, and whether it fails."""


@dataclass(frozen=True, kw_only=True)
class Population:
    """How doubtful the failing and the passing answers of one kind are."""

    name: str
    failing: Doubts
    passing: Doubts

    def traffic(self, answers: int, rate: float | Doubts, random: np.random.Generator) -> Traffic:
        fails = random.random(answers) < rate
        doubts = np.where(fails, random.choice(self.failing, answers), random.choice(self.passing, answers))
        return doubts, fails


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What part of the failing answers the judge is asked about."""

    population: str
    share: float
    base_rate: float
    seen: float


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """How often the interval of the rate holds it, and how wide it is."""

    population: str
    rate: float
    answers: int
    of_answers: float
    """Of the intervals, the part that holds the rate of the answers that were drawn."""
    of_population: float
    """The part that holds the rate of the set."""
    width: float
    width_of_random: float
    """That of a random share of the same size."""


@dataclass(frozen=True, kw_only=True)
class Steadiness:
    """The share of the answers that the judge is asked about, on one course of traffic."""

    course: str
    total: float
    lowest: float
    """Of the hours with 500 answers or more."""
    highest: float
    requests: float
    """For an answer, with all four metrics."""


def asked_of(traffic: Traffic, share: float, random: np.random.Generator, restart: int | None = None) -> list[str]:
    """Why the judge is asked about each answer, or an empty text."""
    draws, drawn = iter(random.random(len(traffic[0]))), random.random(len(traffic[0])) < share * RANDOM_PART
    found: list[str] = []
    for at, doubt in enumerate(traffic[0].tolist()):
        if at == 0 or (restart and at % restart == 0):
            threshold = DoubtThreshold(share, draw=lambda: float(next(draws)))
        found.append(threshold.choose(doubt, is_drawn=bool(drawn[at])) or "")
    return found


def seen_of(population: Population, share: float, base_rate: float, draws: int, random: np.random.Generator) -> Seen:
    failures = seen = 0
    for _ in range(draws):
        traffic = population.traffic(STREAM, base_rate, random)
        is_asked = np.array([bool(one) for one in asked_of(traffic, share, random)])
        failures += int(traffic[1].sum())
        seen += int((traffic[1] & is_asked).sum())
    return Seen(population=population.name, share=share, base_rate=base_rate, seen=seen / failures)


def coverage_of(population: Population, rate: float, answers: int, draws: int, random: np.random.Generator) -> Coverage:
    of_answers = of_population = 0
    width = width_of_random = 0.0
    given = 0
    while given < draws:
        traffic = population.traffic(answers, rate, random)
        found, true_rate = estimated(traffic[1], asked_of(traffic, COVERED_SHARE, random)), float(traffic[1].mean())
        if found is None:  # few were drawn at random, by chance
            continue
        given += 1
        of_answers += found.lower <= true_rate <= found.upper
        of_population += found.lower <= rate <= found.upper
        width += found.upper - found.lower
        labelled = traffic[1][: int(COVERED_SHARE * answers)]
        alone = estimate_rate([Stratum(answers=answers, labels=len(labelled), failing=int(labelled.sum()))])
        assert alone is not None
        width_of_random += alone.upper - alone.lower
    return Coverage(
        population=population.name,
        rate=rate,
        answers=answers,
        of_answers=of_answers / draws,
        of_population=of_population / draws,
        width=width / draws,
        width_of_random=width_of_random / draws,
    )


def estimated(fails: NDArray[np.bool_], asked: Sequence[str]) -> RateEstimate | None:
    doubtful = np.array([one == "doubtful" for one in asked])
    drawn = np.array([one == "random" for one in asked])
    known, rest = int(doubtful.sum()), int((~doubtful).sum())
    return estimate_rate(
        [
            Stratum(answers=known, labels=known, failing=int((fails & doubtful).sum())),
            Stratum(answers=rest, labels=int(drawn.sum()), failing=int((fails & drawn).sum())),
        ]
    )


def courses(population: Population, random: np.random.Generator) -> Iterator[Steadiness]:
    curve = np.sin(np.arange(HOURS) * 2 * np.pi / HOURS)
    hour: np.ndarray = np.repeat(np.arange(HOURS), random.poisson(AN_HOUR * (1 + 0.8 * curve)))
    steady: np.ndarray = np.arange(HOURS * AN_HOUR) // AN_HOUR
    is_burst = (np.arange(len(steady)) // STREAM) % 5 == 1
    for name, hours, rate, restart in (
        ("steady", steady, 0.1, None),
        ("a day's curve", hour, 0.1 - 0.05 * curve[hour], None),
        ("bursts of failures", steady, np.where(is_burst, 0.3, 0.1), None),
        (f"a new process every {RESTART} answers", steady, 0.1, RESTART),
    ):
        traffic = population.traffic(len(hours), rate, random)
        is_asked = np.array([bool(one) for one in asked_of(traffic, COVERED_SHARE, random, restart)])
        by_hour = [float(is_asked[hours == one].mean()) for one in range(HOURS) if (hours == one).sum() >= AN_HOUR // 2]
        total = float(is_asked.mean())
        yield Steadiness(
            course=name,
            total=total,
            lowest=min(by_hour),
            highest=max(by_hour),
            requests=total * REQUESTS_AN_ANSWER,
        )


# What people judged.


async def populations_of(name: str, judgements: Iterable[Judgement]) -> list[Population]:
    """The answers all together, and those of each model that has enough of both kinds."""
    judge = OverlapJudge()
    metrics = (ContextAdherence(judge), Faithfulness(judge))
    kinds: dict[str, tuple[list[float], list[float]]] = {}
    for one in judgements:
        doubt = doubt_of({metric.name: await metric.score(one.record) for metric in metrics})
        for kind in dict.fromkeys((name, f"{name}, {one.model}")):
            if doubt is not None:
                kinds.setdefault(kind, ([], []))[one.supported].append(doubt)
    return [
        Population(name=kind, failing=np.array(failing), passing=np.array(passing))
        for kind, (failing, passing) in kinds.items()
        if min(len(failing), len(passing)) >= LEAST_OF_A_KIND
    ]


def made_up(random: np.random.Generator) -> list[Population]:
    """A judge whose doubts rank a failing answer above a passing one in 78 of 100 pairs."""
    return [Population(name="made up", failing=random.beta(4, 3, 500), passing=random.beta(2.5, 4.5, 500))]


def main() -> None:
    arguments = parsed()
    random = np.random.default_rng(arguments.seed)
    whole, by_model = [], []
    sets = read_sets(arguments.directory, rows=arguments.rows) if arguments.directory else []
    for judged in sets:
        first, *others = asyncio.run(populations_of(judged.name, judged.judgements))
        whole.append(first)
        by_model += others
    whole = whole or made_up(random)
    more = [
        made for path in arguments.more for made in asyncio.run(populations_of(path.parent.name, read_file(path)))[:1]
    ]
    seen = [
        seen_of(population, share, base_rate, arguments.draws // 10, random)
        for population in [*whole, *by_model, *more]
        for share in (SHARES if any(population is one for one in whole) else MAIN_SHARES)
        for base_rate in BASE_RATES
    ]
    covered = [
        coverage_of(
            population,
            rate,
            answers,
            max(arguments.draws * SIZES[0] // answers // (1 if answers == SIZES[0] else 2), 1),
            random,
        )
        for population in whole
        for rate in COVERED_RATES
        for answers in arguments.sizes
    ]
    steady = list(courses(whole[0], random))
    console = Console(width=None if Console().is_terminal else 130)
    show_seen(console, seen, [one.name for one in whole], [one.name for one in by_model], [one.name for one in more])
    show_coverage(console, covered, arguments.draws)
    show_steadiness(console, steady)
    if arguments.json:
        figures = {
            "seen": [asdict(one) for one in seen],
            "coverage": [asdict(one) for one in covered],
            "steadiness": [asdict(one) for one in steady],
        }
        text = json.dumps(figures, indent=2)
        arguments.json.write_text(text + "\n")


# Shown.


def show_seen(
    console: Console, seen: Sequence[Seen], whole: Sequence[str], by_model: Sequence[str], more: Sequence[str]
) -> None:
    def mean(names: Sequence[str], share: float, rate: float) -> str:
        found = [one.seen for one in seen if one.population in names and (one.share, one.base_rate) == (share, rate)]
        return f"{np.mean(found):.2f}" if found else "-"

    for rate in BASE_RATES:
        table = Table(title=f"Failures seen where {rate:.0%} fail, by the share that the judge is asked about")
        table.add_column("answers")
        for share in SHARES:
            table.add_column(str(share), justify="right")
        rows = [("mean of the sets", whole), *((name, [name]) for name in whole), ("within one model, mean", by_model)]
        for name, names in [*rows, *((name, [name]) for name in more)]:
            table.add_row(name, *(mean(names, share, rate) for share in SHARES))
        console.print(table)


def show_coverage(console: Console, covered: Sequence[Coverage], draws: int) -> None:
    table = Table(
        title=f"95 % intervals of the rate at a share of {COVERED_SHARE}; mean of the sets, {draws} draws of each at 1,000"
    )
    for column in (
        "fail",
        "answers",
        "coverage",
        "lowest of a set",
        "of the population",
        "width",
        "width, random share",
    ):
        table.add_column(column, justify="right")
    for rate in COVERED_RATES:
        for answers in dict.fromkeys(one.answers for one in covered):
            rows = [one for one in covered if (one.rate, one.answers) == (rate, answers)]
            columns = ("of_answers", "of_population", "width", "width_of_random")
            held, of_population, width, plain = (np.mean([getattr(one, name) for one in rows]) for name in columns)
            lowest = min(one.of_answers for one in rows)
            figures = (f"{figure:.3f}" for figure in (held, lowest, of_population, width, plain))
            table.add_row(f"{rate:.0%}", f"{answers:,}", *figures)
    console.print(table)


def show_steadiness(console: Console, steady: Sequence[Steadiness]) -> None:
    table = Table(title=f"The share of the answers that the judge is asked about, where {COVERED_SHARE} is wanted")
    for column in ("traffic", "in all", "lowest hour", "highest hour", "requests an answer"):
        table.add_column(column, justify="left" if column == "traffic" else "right")
    for one in steady:
        figures = (f"{figure:.3f}" for figure in (one.total, one.lowest, one.highest, one.requests))
        table.add_row(one.course, *figures)
    console.print(table)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What a judge sees that is asked about a share of the answers.")
    parser.add_argument("directory", type=Path, nargs="?", help="sets of human judgements, as NAME.jsonl.gz")
    parser.add_argument("--more", type=Path, action="append", default=[], metavar="FILE", help="judgements, as JSONL")
    parser.add_argument("--draws", type=int, default=200, help="of each row")
    parser.add_argument("--rows", type=int, help="about as many rows of each set")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="20 draws of 1,000 answers, 60 rows of each set")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    arguments = parser.parse_args()
    arguments.sizes = SIZES[:1] if arguments.quick else SIZES
    if arguments.quick:
        arguments.draws, arguments.rows = 20, arguments.rows or 60
    return arguments


if __name__ == "__main__":
    main()
