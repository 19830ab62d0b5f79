"""ragspan's memory while the judge has stopped: it takes requests and answers none.

    python -m judging.stopped --base-url URL --queue-bytes N --times N

Submits so many times as many bytes as the queue may hold, of which no two records share any, and says how much memory
the process had before and afterwards.
"""

from __future__ import annotations

import argparse
import gc
import resource
from pathlib import Path

from serving.processes import say

from judging.contest import keep_output_for_the_report
from judging.job import RESPONSE, Endpoint
from judging.ragspan_engine import judge_at
from ragspan import RagRecord, ScoringEngine
from ragspan.metrics import ContextAdherence

PASSAGE = 25_000
"""Bytes; a record has four."""


def record(number: int) -> RagRecord:
    passages = [f"{number} {place} ".ljust(PASSAGE, "x") for place in range(4)]
    return RagRecord(question=f"Question {number}?", contexts=passages, response=RESPONSE)


def resident() -> int:
    """Bytes of memory that the process has now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def main() -> None:
    parser = argparse.ArgumentParser(description="ragspan's memory while the judge has stopped.")
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--queue-bytes", type=int, required=True)
    parser.add_argument("--times", type=int, required=True)
    arguments = parser.parse_args()
    keep_output_for_the_report()
    judge = judge_at(Endpoint(base_url=arguments.base_url, concurrency=arguments.concurrency))
    engine = ScoringEngine(
        metrics=[ContextAdherence(judge, polls=3)],
        queue_bytes=arguments.queue_bytes,
        queue_size=1_000_000,
        concurrency=arguments.concurrency,
        exit_timeout=0.0,
    )
    count = arguments.queue_bytes * arguments.times // record(0).size_hint
    try:
        for number in range(arguments.concurrency):  # what is in work is there before, with its connections
            engine.submit(record(-number))
        engine.flush(2.0)
        gc.collect()
        say(port=0)
        before = resident()
        for number in range(count):
            engine.submit(record(number))
        stats = engine.stats()
        say(
            before=before,
            after=resident(),
            peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            submitted=stats.submitted,
            queued=stats.queued,
            in_flight=stats.in_flight,
            dropped=dict(stats.dropped),
        )
    finally:
        engine.shutdown(0.0)  # nobody waits for what is in work


if __name__ == "__main__":
    main()
