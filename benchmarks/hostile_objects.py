"""Requests with hostile objects in inputs, outputs, metadata and state: whether code of theirs runs, and what they cost.

    python benchmarks/hostile_objects.py [--quick] [--json FILE]

Each object counts whatever is run of its class: attributes, operators, conversions. The program runs without a handler and with
ragspan's, and what is run more is because of us: it should be 0. The engine's judge hangs meanwhile, so that captures wait, and the
process may grow by twice `queue_bytes` at most. Added processor time is the median of interleaved runs of the program with
ragspan's handler, whose sink throws captures away, above those with a handler that does nothing.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import statistics
import sys
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda
from rich.console import Console
from rich.table import Table

import ragspan
from ragspan_langchain import RagspanCallbackHandler

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "shared"))
from counted_objects import RUNS, hostile_objects  # type: ignore[import-not-found]

REQUESTS, QUICK_REQUESTS = 10_000, 200
RUNS_OF_TIME, QUICK_RUNS_OF_TIME = 11, 3
REQUESTS_OF_RUN = 100
QUEUE_BYTES = 16 << 20
LARGE = 1 << 20
"""Characters of a text in a document's metadata."""


@dataclass(frozen=True, kw_only=True)
class Result:
    requests: int
    runs_alone: int
    runs_with_ragspan: int
    runs_because_of_us: int
    queue_bytes: int
    bytes_held: int
    grown_bytes: int
    added_us: float
    """Of processor time for a request, median."""
    added_us_least: float
    added_us_most: float


class Finds(BaseRetriever):
    value: Any = None
    size: int = LARGE

    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        large = "w" * self.size + query
        return [Document(page_content="The fee is 5 euros.", metadata={"value": self.value, "window": large})]


class Deaf(BaseCallbackHandler):
    run_inline = True


class Hangs:
    """A metric that ends when it is told to."""

    name = "hangs"

    def __init__(self) -> None:
        self.gate = threading.Event()

    def score(self, _: ragspan.RagRecord) -> ragspan.NotApplicable:
        self.gate.wait()
        return ragspan.NotApplicable(reason="no_response")


class Nowhere:
    def submit(self, capture: Any) -> None:
        assert capture.size_hint


def program(value: Any, size: int = LARGE) -> Runnable[Any, Any]:
    model = GenericFakeChatModel(messages=(AIMessage("It is 5 euros.") for _ in itertools.count()))
    find = Finds(value=value, size=size)
    return (
        RunnableLambda(lambda given: {"state": value, "found": find.invoke(given["question"]), "list": [value]})
        | RunnableLambda(lambda state: state["found"][0].page_content)
        | model
        | RunnableLambda(lambda reply: {"answer": reply.content, "state": value})
    )


def ask(number: int, programs: list[tuple[Any, Runnable[Any, Any]]], handlers: list[Any]) -> None:
    value, chain = programs[number % len(programs)]
    given = {"question": f"What is the fee of {number}?", "value": value, "values": [value]}
    chain.invoke(given, {"callbacks": handlers, "metadata": {"number": number}})


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(*, quick: bool) -> Result:
    requests = QUICK_REQUESTS if quick else REQUESTS
    programs = [(value, program(value)) for value in hostile_objects().values()]
    metric = Hangs()
    engine = ragspan.ScoringEngine(
        metrics=[metric], emitters=[], judging="thread", queue_bytes=QUEUE_BYTES, queue_size=100_000
    )
    ours, deaf, listening = [RagspanCallbackHandler(engine)], [Deaf()], [RagspanCallbackHandler(Nowhere())]
    for handlers in ([], deaf, listening):
        for number in range(2 * len(programs)):
            ask(number, programs, handlers)

    RUNS.clear()
    for number in range(requests):
        ask(number, programs, [])
    alone = Counter(RUNS)
    gc.collect()
    before = resident()
    RUNS.clear()
    for number in range(requests):
        ask(number, programs, ours)
    with_ragspan = Counter(RUNS)
    grown, held = resident() - before, engine._queue.bytes  # noqa: SLF001  ours
    metric.gate.set()
    engine.shutdown(30)

    small = [
        (value, program(value, 1000)) for value, _ in programs
    ]  # a large text takes longer to make than all the rest
    added = sorted(
        time_of(small, listening) - time_of(small, deaf) for _ in range(QUICK_RUNS_OF_TIME if quick else RUNS_OF_TIME)
    )
    return Result(
        requests=requests,
        runs_alone=alone.total(),
        runs_with_ragspan=with_ragspan.total(),
        runs_because_of_us=(with_ragspan - alone).total(),
        queue_bytes=QUEUE_BYTES,
        bytes_held=held,
        grown_bytes=grown,
        added_us=statistics.median(added),
        added_us_least=added[0],
        added_us_most=added[-1],
    )


def time_of(programs: list[tuple[Any, Runnable[Any, Any]]], handlers: list[Any]) -> float:
    """Microseconds of processor time for a request."""
    gc.collect()
    began = time.thread_time()
    for number in range(REQUESTS_OF_RUN):
        ask(number, programs, handlers)
    return (time.thread_time() - began) / REQUESTS_OF_RUN * 1e6


def show(result: Result) -> None:
    table = Table(title=f"{result.requests:,} requests with hostile objects")
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_row("runs of the objects' code, without ragspan", f"{result.runs_alone:,}")
    table.add_row("because of ragspan", f"{result.runs_because_of_us:,}")
    table.add_row("queue_bytes", f"{result.queue_bytes / 2**20:.1f} MiB")
    table.add_row("bytes that the queue counts", f"{result.bytes_held / 2**20:.1f} MiB")
    table.add_row("growth of the process", f"{result.grown_bytes / 2**20:.1f} MiB")
    table.add_row(
        "added processor time for a request, median (least … most)",
        f"{result.added_us:.0f} ({result.added_us_least:.0f} … {result.added_us_most:.0f}) us",
    )
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="What hostile objects do to a request, and it to them.")
    parser.add_argument("--quick", action="store_true", help="few requests only: whether it runs, not what it costs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    arguments = parser.parse_args()
    result = measure(quick=arguments.quick)
    show(result)
    if arguments.json:
        arguments.json.write_text(json.dumps(asdict(result), indent=2) + "\n")


if __name__ == "__main__":
    main()
