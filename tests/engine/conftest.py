"""Fakes that behave well or badly, named by what they do, and the fixtures of the engine's tests.

Nothing here sleeps: what hangs does so until the test lets it go, which the fixtures do at the end in any case.
"""

from __future__ import annotations

import asyncio
import queue
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import forked
import pytest
from doubtful import asked_judge, endpoint  # noqa: F401 - fixtures

from ragspan.engine import EngineStats, ScoringEngine
from ragspan.outcomes import Outcome, Score, ScoredRecord
from ragspan.records import RagRecord, SpanAnchor
from ragspan.telemetry.emitter_protocols import AnswerHandle, ScoreEmitter

PATIENCE = 120.0
"""Seconds after which a test gives up waiting for what should have come at once."""

GRACE = 8.0
"""Seconds by which a busy machine may exceed a limit; what hangs in a test hangs for longer, and defaults are longer."""


class ConstantMetric:
    def __init__(self, value: float = 1.0, name: str = "constant") -> None:
        self.name = name
        self._value = value

    async def score(self, record: RagRecord) -> Outcome:
        return Score(value=self._value)


class CallingMetric:
    """Does what it is told, on the event loop."""

    def __init__(self, call: Callable[[RagRecord], object], name: str = "calling") -> None:
        self.name = name
        self._call = call

    async def score(self, record: RagRecord) -> Outcome:
        result = self._call(record)
        return result if result is not None else Score(value=1.0)


class ThreadMetric(CallingMetric):
    """Does what it is told, in a thread."""

    def score(self, record: RagRecord) -> Outcome:  # type: ignore[override]
        result = self._call(record)
        return result if result is not None else Score(value=1.0)


class HangingMetric:
    """Waits on the event loop until it is let go, or cancelled."""

    def __init__(self, name: str = "hanging") -> None:
        self.name = name
        self.started = queue.SimpleQueue[RagRecord]()
        self.was_cancelled = threading.Event()
        self._released = threading.Event()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def score(self, record: RagRecord) -> Outcome:
        gate = asyncio.Event()
        self._waiting.append((asyncio.get_running_loop(), gate))
        self.started.put(record)
        if not self._released.is_set():
            await self._wait(gate)
        return Score(value=1.0)

    async def _wait(self, gate: asyncio.Event) -> None:
        try:
            await gate.wait()
        except asyncio.CancelledError:
            self.was_cancelled.set()
            raise

    def wait_until_started(self, times: int = 1) -> None:
        for _ in range(times):
            self.started.get(timeout=PATIENCE)

    def release(self) -> None:
        self._released.set()
        for loop, gate in self._waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(gate.set)


class BlockingMetric(HangingMetric):
    """Blocks its thread until it is let go."""

    def __init__(self, name: str = "blocking") -> None:
        super().__init__(name)

    def score(self, record: RagRecord) -> Outcome:  # type: ignore[override]
        self.started.put(record)
        self._released.wait()
        return Score(value=1.0)


class BlockingTheLoop(BlockingMetric):
    """Blocks the whole worker until it is let go."""

    async def score(self, record: RagRecord) -> Outcome:
        return super().score(record)


class ListEmitter(ScoreEmitter):
    """Keeps what it gets, and a journal of how it was called."""

    def __init__(self, *, score_wait: float = 20.0, span: SpanAnchor | None = None) -> None:
        self.score_wait = score_wait
        self.span = span
        self.journal: list[str] = []
        self.scored: list[ScoredRecord] = []
        self._arrived = queue.SimpleQueue[ScoredRecord]()

    def start(self, record: RagRecord) -> AnswerHandle:
        self.journal.append("start")
        return self

    def emit(self, scored: ScoredRecord) -> None:
        self.journal.append("late" if scored.late else "emit")
        self.scored.append(scored)
        self._arrived.put(scored)

    def flush(self, timeout: float) -> bool:
        self.journal.append("flush")
        return True

    def shutdown(self, timeout: float) -> None:
        self.journal.append("shutdown")

    def next(self) -> ScoredRecord:
        return self._arrived.get(timeout=PATIENCE)


class NotingEmitter(ListEmitter):
    """Notes in its journal what is given up, too."""

    def abandon(self) -> None:
        self.journal.append("abandon")


class RaisingEmitter(ListEmitter):
    """Raises whatever it is asked."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(score_wait=0.0)
        self._error = error

    def start(self, record: RagRecord) -> AnswerHandle:
        super().start(record)
        if len(self.journal) == 1:
            raise self._error
        return self

    def emit(self, scored: ScoredRecord) -> None:
        raise self._error

    def flush(self, timeout: float) -> bool:
        raise self._error

    def shutdown(self, timeout: float) -> None:
        raise self._error


class HangingEmitter(ListEmitter):
    """Hangs in `flush` and `shutdown` until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self._released = threading.Event()

    def flush(self, timeout: float) -> bool:
        super().flush(timeout)
        return self._released.wait()

    def shutdown(self, timeout: float) -> None:
        super().shutdown(timeout)
        self._released.wait()

    def release(self) -> None:
        self._released.set()


def break_the_loop() -> None:
    """Let the running event loop fail by itself, once."""
    loop = asyncio.get_running_loop()

    def fail() -> None:
        del loop._run_once  # so that it can be wound down
        raise OSError

    loop._run_once = fail  # type: ignore[attr-defined]


class FakeCapture:
    """A capture of any size that becomes what it is told."""

    def __init__(self, make: Callable[[], RagRecord | None] = lambda: None, *, size: object = 100) -> None:
        self._make = make
        self._size = size

    @property
    def size_hint(self) -> int:
        if isinstance(self._size, BaseException):
            raise self._size
        return self._size  # type: ignore[return-value]

    def to_record(self) -> RagRecord | None:
        return self._make()


def a_record(**changes: object) -> RagRecord:
    values = {"question": "Why?", "contexts": ["Because."], "response": "Because.", "started_ns": 1}
    return RagRecord(**(values | changes))  # type: ignore[arg-type]


def score(engine: ScoringEngine, *captures: object, times: int = 1) -> None:
    """Let the engine score these, or so many usual records, until everything is flushed."""
    for capture in captures or [a_record() for _ in range(times)]:
        engine.submit(capture)  # type: ignore[arg-type]
    assert engine.flush(PATIENCE)


@pytest.fixture
def fakes() -> ModuleType:
    """This module: the fakes by their names."""
    return sys.modules[__name__]


@pytest.fixture
def assert_conserved() -> Callable[[ScoringEngine], EngineStats]:
    """Checks that every submitted capture is in exactly one place; returns the counts."""

    def check(engine: ScoringEngine) -> EngineStats:
        stats = engine.stats()
        assert stats.submitted == stats.queued + stats.in_flight + stats.done + sum(stats.dropped.values())
        return stats

    return check


@pytest.fixture
def make_engine(assert_conserved) -> Iterator[Callable[..., ScoringEngine]]:
    """Makes engines that are checked and shut down at the end, with all that hangs in them let go."""
    made: list[tuple[ScoringEngine, list[object]]] = []

    def make(*metrics: object, emitters: object = (), **options: object) -> ScoringEngine:
        engine = ScoringEngine(metrics=metrics, emitters=emitters, **options)  # type: ignore[arg-type]
        made.append((engine, [*metrics, *emitters]))  # type: ignore[misc]
        return engine

    yield make
    for engine, parts in made:
        assert_conserved(engine)
        for part in parts:
            getattr(part, "release", lambda: None)()
        engine.shutdown(PATIENCE)
        stats = assert_conserved(engine)
        assert (stats.queued, stats.in_flight) == (0, 0)


@pytest.fixture
def score_one(make_engine) -> Callable[..., ScoredRecord]:
    """Scores one record; returns what the emitter got."""

    def run(*metrics: object, emitter: ListEmitter | None = None, record: object = None, **options: object):
        emitter = emitter or ListEmitter()
        engine = make_engine(*metrics, emitters=[emitter], **options)
        score(engine, record or a_record())
        assert engine.stats().finished == 1
        [scored] = emitter.scored
        return scored

    return run


@pytest.fixture
def in_child() -> Callable[[Callable[[], object]], object]:
    """Runs a function in a forked child and returns its result, which JSON must be able to hold."""
    return forked.in_child


@pytest.fixture
def run_script(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a program in a process of its own; whatever it writes to stderr fails the test."""

    def run(program: str, *, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(program))
        command = [sys.executable, "-X", "faulthandler", str(script)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done

    return run
