"""One contender of `throughput.py`, in a process of its own.

    python -m judging.contest CONTENDER --base-url URL --concurrency N --answers N

It has some answers judged to warm up, says that it is ready, has the others judged, and says how long that took.
"""

from __future__ import annotations

import argparse
import importlib
import os
import resource
import sys
import time
from contextlib import closing

from serving.processes import say

from judging.job import Contender, Endpoint, answers

CONTENDERS = {
    "bare-client": "judging.bare_client:BareClient",
    "ragspan": "judging.ragspan_engine:one_metric",
    "ragspan-four-metrics": "judging.ragspan_engine:four_metrics",
}
WARM_UP = 2
"""Rounds of as many answers as the concurrency: connections are open then, and everything is imported."""


def contender(name: str, endpoint: Endpoint) -> Contender:
    module, _, factory = CONTENDERS[name].partition(":")
    made: Contender = getattr(importlib.import_module(module), factory)(endpoint)
    return made


def keep_output_for_the_report() -> None:
    """Some libraries print: that goes to standard error."""
    report = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = os.fdopen(report, "w")


def main() -> None:
    parser = argparse.ArgumentParser(description="One contender of throughput.py.")
    parser.add_argument("contender", choices=CONTENDERS)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--answers", type=int, required=True)
    arguments = parser.parse_args()
    keep_output_for_the_report()
    endpoint = Endpoint(base_url=arguments.base_url, concurrency=arguments.concurrency)
    with closing(contender(arguments.contender, endpoint)) as judging:
        judging.judge(answers(WARM_UP * endpoint.concurrency))
        say(port=0)
        work = answers(arguments.answers)
        started, cpu = time.perf_counter(), time.process_time()
        judged = judging.judge(work)
        say(
            judged=judged,
            seconds=time.perf_counter() - started,
            cpu_seconds=time.process_time() - cpu,
            peak_memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        )


if __name__ == "__main__":
    main()
