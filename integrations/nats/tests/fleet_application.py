"""An application for the tests of a fleet, whose answers go to the sink that `RAGSPAN_SINK` names.

    python -m fleet_application FIRST COUNT PAUSE

It answers COUNT questions, the first of them about record FIRST, with PAUSE seconds between two, and says so with a line of JSON.
Then it waits until nothing of it is on the way any more, and says how its answers have ended and what the slowest of them took.
"""

from __future__ import annotations

import json
import sys
import time

from fleet_records import a_record

from ragspan.defaults import default_sink

_PATIENCE = 120.0  # seconds


def main():
    first, count, pause = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    sink = default_sink()
    slowest = 0.0
    for number in range(first, first + count):
        record = a_record(number)
        began = time.perf_counter()
        sink.submit(record)
        slowest = max(slowest, time.perf_counter() - began)
        time.sleep(pause)
    say(answered=count)
    is_out = sink.flush(_PATIENCE)
    stats = sink.stats()
    say(is_out=is_out, slowest=slowest, published=stats.published, dropped=dict(stats.dropped))


def say(**what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
