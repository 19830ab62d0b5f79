"""What goes wrong in a soak, besides the judge: the spans' endpoint, the helper process, forks, bursts."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable

from serving import processes
from serving.processes import Program

import ragspan
from ragspan import ScoringEngine
from soaking.vitals import helper_pids, is_conserved

_CHILD_LIMIT = 30.0
"""Seconds after the end of the traffic, when a forked process counts as hung."""
_CHILD_FLUSH = 8.0
"""Seconds that it has for its answers."""
_CHILD_ANSWERS = 3


class Saboteur:
    """Does the next bad thing every so many seconds, for as long as it is entered."""

    def __init__(self, deeds: list[Callable[[], str]], *, interval: float) -> None:
        self._deeds = itertools.cycle(deeds)
        self._interval = interval
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.done: Counter[str] = Counter()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval):
            self.done[next(self._deeds)()] += 1


class SpansEndpoint:
    """The endpoint of the spans, which can be taken away and brought back."""

    def __init__(self) -> None:
        self._program: Program | None = processes.start("serving.sink")
        self.port = self._program.port
        self.spans = 0
        """Received by those that were taken away."""

    def toggle(self) -> str:
        if self._program is None:
            self._program = processes.start("serving.sink", "--port", self.port)
            return "endpoint of spans up"
        self.close()
        return "endpoint of spans down"

    def bring_back(self) -> None:
        if self._program is None:
            self.toggle()

    def close(self) -> None:
        program, self._program = self._program, None
        if program is not None:
            self.spans += program.get("/counts")["spans"]
            program.end()


def kill_helper() -> str:
    pids = helper_pids()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return "helper killed" if pids else "no helper to kill"


class Forks:
    """Forks in the middle of everything; each child answers a few questions of its own."""

    def __init__(self, engine: ScoringEngine) -> None:
        self._engine = engine
        self._children: list[int] = []

    def begin(self) -> str:
        pid = os.fork()
        if pid == 0:
            outcome = _BROKE
            try:
                outcome = _answer_in_child(self._engine)
            finally:
                os._exit(outcome)
        self._children.append(pid)
        return "fork"

    def outcomes(self) -> Counter[str]:
        """What became of the children; those that go on for too long are killed."""
        deadline = time.monotonic() + _CHILD_LIMIT
        outcomes = Counter(_outcome(pid, deadline) for pid in self._children)
        self._children.clear()
        return outcomes


def _outcome(pid: int, deadline: float) -> str:
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return _OUTCOMES.get(os.waitstatus_to_exitcode(status), "broke")
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "hung"


_BROKE = 99
_OUTCOMES = {0: "all sent", 1: "had work of its parent", 2: "lost count", 3: "not all sent in time"}
GOOD_OUTCOMES = frozenset({"all sent", "not all sent in time"})
"""The endpoint of the spans may be down just then."""


def _answer_in_child(engine: ScoringEngine) -> int:
    if engine.stats().submitted:
        return 1
    for place in range(_CHILD_ANSWERS):
        engine.submit(
            ragspan.RagRecord(question=f"In the child, {place}?", contexts=["A passage."], response="A reply.")
        )
    all_sent = engine.flush(_CHILD_FLUSH)
    stats = engine.stats()
    if stats.submitted != _CHILD_ANSWERS or not is_conserved(stats):
        return 2
    return 0 if all_sent else 3
