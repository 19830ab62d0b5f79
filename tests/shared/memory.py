"""How much a program grows while what it submits waits, read from outside of it."""

from __future__ import annotations

import json
import os
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest
from programs import output_of

QUEUE_BYTES = 8 << 20
REQUESTS = 800
"""With a mebibyte of metadata each: without a bound they would take 800 MiB."""
LINUX = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's figures of the process")

_BEGINNING = f"""
import gc, itertools, json, threading

QUEUE_BYTES, REQUESTS = {QUEUE_BYTES}, {REQUESTS}

def resident():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * 4096

def metadata(number):
    '''A mebibyte that nobody shares, of another kind each time.'''
    big = "w" * (1 << 20) + str(number)
    return [
        {{"window": big}},
        {{"array": bytearray(1 << 20)}},
        {{"parents": [{{"text": big}}]}},
        {{f"part {{n}}": big[: 1 << 14] + f"{{number}} {{n}}" for n in range(64)}},
        {{"sentences": [f"{{number}} {{n}} " + "w" * 240 for n in range(4096)]}},
    ][number % 5]

def waiting_engine():
    '''An engine whose judge never answers.'''
    import ragspan

    never = threading.Event()

    class Hanging:
        name = "hanging"

        def score(self, record):
            never.wait()

    return ragspan.ScoringEngine(
        metrics=[Hanging()], emitters=[], judging="thread", concurrency=1, metric_timeout=3600.0,
        queue_bytes=QUEUE_BYTES, queue_size=100_000,
    )

def report(ask, stats):
    for number in range(40):
        ask(number)
    before = most = resident()
    for number in range(REQUESTS):
        ask(number)
        if number % 100 == 0:
            most = max(most, resident())
    most = max(most, resident())
    print(json.dumps({{"grown": most - before, "queued": stats().queued, "dropped": dict(stats().dropped)}}), flush=True)
    import os
    os._exit(0)
"""


@dataclass(frozen=True)
class Growth:
    """Of one program."""

    grown: int
    """Bytes of the process at most, after its first requests."""
    queued: int
    dropped: dict[str, int]


def growth_of(program):
    """How much this program grows; it defines `ask(number)`, a request, and calls `report(ask, stats)`."""
    environment = {name: value for name, value in os.environ.items() if name not in {"TIKTOKEN_CACHE_DIR", "NLTK_DATA"}}
    environment |= {"MALLOC_ARENA_MAX": "2", "MALLOC_TRIM_THRESHOLD_": "0"}
    printed = output_of("-c", _BEGINNING + textwrap.dedent(program), timeout=600, environment=environment)
    return Growth(**json.loads(printed.splitlines()[-1]))


def assert_bounded(growth):
    """The queue was full, and the process grew by no more than twice its bound."""
    assert growth.dropped.get("queue_bytes", 0) > 0, growth
    assert growth.grown <= 2 * QUEUE_BYTES, growth
