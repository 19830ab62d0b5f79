"""An application for the tests of a fleet, whose answers go to the sink that `RAGSPAN_SINK` names.

    python -m fleet_application FIRST COUNT PAUSE [--max-records N --patience SECONDS]

It answers COUNT questions, the first of them about record FIRST, with PAUSE seconds between two, and says so with a line of JSON.
Then it waits until nothing of it is on the way any more, and says how its answers have ended and what the slowest of them took. With
`--max-records` it makes a sink of its own, for a stream of so many records.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict

from fleet_records import a_record

from ragspan.config import variable
from ragspan.defaults import default_sink
from ragspan_nats import NatsSink, Stream

_PATIENCE = 120.0  # seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("pause", type=float)
    parser.add_argument("--max-records", type=int)
    parser.add_argument("--patience", type=float, default=600.0)
    given = parser.parse_args()
    sink = default_sink()
    if given.max_records is not None:
        stream = Stream(max_records=given.max_records)
        sink = NatsSink(variable("RAGSPAN_SINK"), stream=stream, retry_timeout=given.patience)
    slowest = 0.0
    for number in range(given.first, given.first + given.count):
        record = a_record(number)
        began = time.perf_counter()
        sink.submit(record)
        slowest = max(slowest, time.perf_counter() - began)
        time.sleep(given.pause)
    say(answered=given.count)
    is_out = sink.flush(_PATIENCE)
    say(is_out=is_out, slowest=slowest, **asdict(sink.stats()))


def say(**what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
