"""Where the handler's time goes in one LlamaIndex query: what each of its callbacks takes in the caller's thread.

    python benchmarks/callbacks.py [--queries 400]

One row a callback, in the order of the query: the least time and the median. The least is that of warm caches, and the same on
a busy machine. `hot_path.py` measures the sum above a no-op handler, on cold caches. A clock that is read around each callback
and the call itself are in every figure; the row "no callback" says how much that is.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
from collections.abc import Callable
from contextlib import closing
from time import perf_counter_ns
from typing import Any

from scenarios import llama_index_rag

from ragspan_llama_index.objects import UUID_LENGTH

CALLBACKS = ("span_enter", "span_exit", "span_drop")


def timed(callback: Callable[..., None], name: str, times: list[tuple[str, int]]) -> Callable[..., None]:
    def call(**given: Any) -> None:
        started = perf_counter_ns()
        callback(**given)
        times.append((f"{name} {given['id_'][:-UUID_LENGTH]}", perf_counter_ns() - started))

    return call


def nothing(**_: Any) -> None:
    pass


def times_of_queries(queries: int) -> list[list[tuple[str, int]]]:
    """Nanoseconds of each callback in each query."""
    with closing(asyncio.new_event_loop()) as loop:
        framework = llama_index_rag.framework(loop)
        query, own = framework.scenarios[0], framework.ragspan[0].__dict__
        times: list[tuple[str, int]] = []
        own.update({name: timed(own[name], name, times) for name in CALLBACKS})
        query.run(framework.ragspan)
        gc.collect()
        gc.freeze()
        rows = []
        for _ in range(queries):
            times.clear()
            query.run(framework.ragspan)
            rows.append([*times])
        return rows


def show(name: str, times: list[int]) -> tuple[float, float]:
    least, median = min(times) / 1000, statistics.median(times) / 1000
    print(f"{name:55} {least:6.2f} {median:6.2f}")
    return least, median


def main() -> None:
    parser = argparse.ArgumentParser(description="What each callback of the handler takes in a query, in microseconds.")
    parser.add_argument("--queries", type=int, default=400)
    rows = times_of_queries(parser.parse_args().queries)
    print(f"{'callback':55} {'least':>6} {'median':>6}")
    figures = [show(calls[0][0], [time for _, time in calls]) for calls in zip(*rows, strict=True)]
    print(f"{'all':55} {sum(least for least, _ in figures):6.2f} {sum(median for _, median in figures):6.2f}")
    empty: list[tuple[str, int]] = []
    call = timed(nothing, "", empty)
    for _ in range(len(rows)):
        call(id_="", bound_args=None, instance=None, parent_id=None, tags=None)
    show("no callback", [time for _, time in empty])


if __name__ == "__main__":
    main()
