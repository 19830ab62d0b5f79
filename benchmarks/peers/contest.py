"""Lets the contestants take turns, each in its own process, and compares what they add to a program.

Processes of their own, because half of the peers put themselves into every run of the process, or patch the framework; in
turn, because what slows the machine for a while then slows all of them.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from interleaved import quartiles
from serving.processes import HOST, Program, running

from peers.contestants import CONTESTANTS, Contestant


@dataclass(frozen=True, kw_only=True, slots=True)
class Contest:
    """A program of a framework."""

    framework: str
    scenario: str
    runs: int
    """In a row: about as many as make a batch of spans."""


CONTESTS = [
    Contest(framework="langchain", scenario="ten documents of 1 kB", runs=50),
    Contest(framework="langchain", scenario="stream", runs=10),
    Contest(framework="llama-index", scenario="query", runs=50),
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Microseconds that a handler adds to one request, above one that does nothing."""

    framework: str
    scenario: str
    contestant: str
    version: str
    is_peer: bool
    thread_us: float
    """Processor time of the calling thread."""
    thread_quartiles_us: tuple[float, float]
    process_us: float
    """Processor time of the process, with its background threads."""
    process_quartiles_us: tuple[float, float]
    all_us: float
    """Processor time of the process and of those that it has started: what a scored answer costs altogether."""
    all_quartiles_us: tuple[float, float]
    noise_us: float
    """What a second handler that does nothing adds to the thread's time."""
    bare_us: float
    """The thread's time without any handler."""
    exported_bytes: float
    """Of one request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """A contestant that was not measured."""

    framework: str
    contestant: str
    reason: str


def measured(contests: Sequence[Contest], *, rounds: int, quick: bool) -> Iterator[Cost | LeftOut]:
    """Everybody on programs of one framework."""
    [framework] = {contest.framework for contest in contests}
    with ExitStack() as stack:
        sink = stack.enter_context(running("peers.sink"))
        programs: dict[str, Program] = {}
        for place, contestant in enumerate(CONTESTANTS):
            if reason := why_not(contestant, framework):
                yield LeftOut(framework=framework, contestant=contestant.name, reason=reason)
            else:
                options = (framework, contestant.name, f"http://{HOST}:{sink.port}/{place}")
                programs[contestant.name] = stack.enter_context(
                    running("peers.turns", *options, environment={"PYTHONWARNINGS": "ignore"})
                )
        for name in list(programs):
            if reason := answer_of(programs[name]).get("trouble"):
                del programs[name]
                yield LeftOut(framework=framework, contestant=name, reason=reason)
        for contest in contests:
            yield from compared(contest, programs, sink, rounds=rounds, quick=quick)


def answer_of(program: Program) -> dict[str, Any]:
    """The next line; the trouble, if it ended instead."""
    try:
        answer: dict[str, Any] = program.read_line()
    except RuntimeError as error:
        return {"trouble": str(error)}
    return answer


def why_not(contestant: Contestant, framework: str) -> str | None:
    if framework not in contestant.distributions:
        return contestant.without
    return "not installed" if contestant.version(framework) is None else None


def compared(
    contest: Contest, programs: dict[str, Program], sink: Program, *, rounds: int, quick: bool
) -> Iterator[Cost | LeftOut]:
    """Everybody on one program: a turn each to warm up, and then the rounds."""
    runs = max(2, contest.runs // 10) if quick else contest.runs
    exported: dict[str, Any] = {}
    turns: dict[str, list[dict[str, Any]]] = {name: [] for name in programs}
    for round_number in range(1 + rounds):
        if round_number == 1:
            exported = sink.get("/counts")
        for name in rotated(list(programs), round_number):
            if not turns[name] or "trouble" not in turns[name][-1]:
                programs[name].tell(scenario=contest.scenario, runs=runs)
                turns[name].append(answer_of(programs[name]))
    received = sink.get("/counts")
    for place, contestant in enumerate(CONTESTANTS):
        if contestant.name in programs:
            sent = bytes_of(received, place) - bytes_of(exported, place)
            yield cost(contest, contestant, turns[contestant.name], sent / (rounds * runs))


def rotated(names: list[str], by: int) -> list[str]:
    start = by % len(names)
    return names[start:] + names[:start]


def cost(contest: Contest, contestant: Contestant, turns: Sequence[dict[str, Any]], exported: float) -> Cost | LeftOut:
    if reason := why_void(contestant, turns, exported):
        return LeftOut(framework=contest.framework, contestant=contestant.name, reason=reason)
    _, *turns = turns
    above = [
        [ours - none for ours, none in zip(turn["turn"]["handler"], turn["turn"]["no-op"], strict=True)]
        for turn in turns
    ]
    threads, processes, together = zip(*above, strict=True)
    return Cost(
        framework=contest.framework,
        scenario=contest.scenario,
        contestant=contestant.name,
        version=contestant.version(contest.framework) or "",
        is_peer=contestant.is_peer,
        thread_us=statistics.median(threads),
        thread_quartiles_us=quartiles(threads),
        process_us=statistics.median(processes),
        process_quartiles_us=quartiles(processes),
        all_us=statistics.median(together),
        all_quartiles_us=quartiles(together),
        noise_us=statistics.median(turn["turn"]["no-op again"][0] - turn["turn"]["no-op"][0] for turn in turns),
        bare_us=statistics.median(turn["turn"]["bare"][0] for turn in turns),
        exported_bytes=exported,
    )


def why_void(contestant: Contestant, turns: Sequence[dict[str, Any]], exported: float) -> str | None:
    if trouble := turns[-1].get("trouble"):
        return str(trouble)
    if hosts := turns[-1]["refused"]:
        return f"it tried to reach {', '.join(hosts)}"
    return "it exported nothing" if contestant.exports and not exported else None


def bytes_of(counts: dict[str, dict[str, int]], place: int) -> int:
    return counts.get(str(place), {}).get("bytes", 0)
