"""One handler in a process of its own, which takes a turn whenever it is told to.

    python -m peers.turns FRAMEWORK CONTESTANT SINK

A turn is so many runs of a program in a row without any handler, with one that does nothing, with another of these, and
with the contestant's, in changing order. Three times are taken of each: the processor time of the calling thread during
the runs; that of the whole process from the first run until everything is exported, which is what runs in background
threads as well; and that of the process with all that it has started, such as ragspan's helper.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing

from interleaved import Framework, Scenario
from judging.contest import keep_output_for_the_report
from serving.processes import say
from serving.processor_time import descendants, is_measurable, of_process

from peers.attachment import Attachment
from peers.contestants import BY_NAME
from peers.offline import stay_offline

FRAMEWORKS = {"langchain": "scenarios.langchain_rag", "llama-index": "scenarios.llama_index_rag"}


def one_turn(
    scenario: Scenario, variants: dict[str, Attachment], order: Iterator[tuple[str, ...]], runs: int
) -> dict[str, tuple[float, float, float]]:
    """Microseconds of a run: of the calling thread, of the process, and of all processes."""
    gc.collect()
    gc.freeze()
    return {name: timed(scenario, variants[name], runs) for name in next(order)}


def timed(scenario: Scenario, attachment: Attachment, runs: int) -> tuple[float, float, float]:
    with attachment.active():
        others = seconds_of_others()
        thread, process = time.thread_time_ns(), time.process_time_ns()
        for _ in range(runs):
            scenario.run(attachment.handlers)
        thread = time.thread_time_ns() - thread
        attachment.settle()
        process = time.process_time_ns() - process
        others = seconds_of_others() - others
    return thread / runs / 1000, process / runs / 1000, (process / 1000 + others * 1e6) / runs


def seconds_of_others() -> float:
    """Processor time of the processes that this one has started, in hundredths; 0 where the system does not say."""
    return sum(map(of_process, descendants(os.getpid()))) if is_measurable() else 0.0


def attachments(framework: Framework, name: str, contestant: str, sink: str) -> dict[str, Attachment]:
    return {
        "bare": Attachment(),
        "no-op": Attachment(handlers=[framework.no_op()]),
        "no-op again": Attachment(handlers=[framework.no_op()]),
        "handler": BY_NAME[contestant].attachment(name, sink),
    }


def take_turns(name: str, contestant: str, sink: str, loop: asyncio.AbstractEventLoop, refused: list[str]) -> None:
    framework: Framework = importlib.import_module(FRAMEWORKS[name]).framework(loop)
    variants = attachments(framework, name, contestant, sink)
    scenarios = {scenario.name: scenario for scenario in framework.scenarios}
    order = itertools.cycle(itertools.permutations(variants))
    say(ready=True)
    for line in sys.stdin:
        command = json.loads(line)
        turn = one_turn(scenarios[command["scenario"]], variants, order, command["runs"])
        say(turn=turn, refused=refused)


def main() -> None:
    name, contestant, sink = sys.argv[1:]
    keep_output_for_the_report()
    say(port=0)
    refused = stay_offline()
    with closing(asyncio.new_event_loop()) as loop:
        try:
            take_turns(name, contestant, sink, loop, refused)
        except Exception as error:
            say(trouble=f"{type(error).__name__}: {error}")
            raise


if __name__ == "__main__":
    main()
