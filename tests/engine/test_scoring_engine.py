from __future__ import annotations

import functools
import signal
import sys
import threading
import types
import weakref
from collections.abc import Callable

import pytest

from ragspan.engine import EngineStats, ScoringEngine


def counts(stats: EngineStats) -> tuple[int, int, int, int, dict[str, int]]:
    return stats.submitted, stats.queued, stats.in_flight, stats.done, dict(stats.dropped)


def is_conserved(stats: EngineStats) -> bool:
    return stats.submitted == stats.queued + stats.in_flight + stats.done + sum(stats.dropped.values())


@pytest.mark.parametrize("error", [ValueError("secret"), SystemExit(3)])
def test_a_capture_that_cannot_be_made_a_record_is_dropped(fakes, make_engine, caplog, error: BaseException):
    def fail() -> None:
        raise error

    engine = make_engine(fakes.ConstantMetric())
    for make in (fail, lambda: {"question": "Why?"}, fakes.a_record):
        engine.submit(fakes.FakeCapture(make))

    assert engine.flush(fakes.PATIENCE)
    assert counts(engine.stats()) == (3, 0, 0, 1, {"capture_error": 2})
    assert f"a capture could not be made a record: {type(error).__name__}" in caplog.messages
    assert "secret" not in caplog.text


@pytest.fixture
def busy_engine(fakes, make_engine):
    """Makes engines whose only place is taken, so that what is submitted waits."""

    def make(**options: object) -> ScoringEngine:
        metric = fakes.HangingMetric()
        engine = make_engine(metric, concurrency=1, **options)
        engine.submit(fakes.FakeCapture(fakes.a_record, size=0))
        metric.wait_until_started()
        return engine

    return make


def test_a_full_queue_drops_the_oldest_and_lets_go_of_it(fakes, busy_engine):
    engine = busy_engine(queue_size=2)
    captures = [fakes.FakeCapture() for _ in range(3)]
    let_go_of = [weakref.ref(capture) for capture in captures]
    while captures:
        engine.keep_queued(is_ending=len(captures) > 1)  # while there is room, that changes nothing
        engine.submit(captures.pop(0))

    assert counts(engine.stats()) == (4, 2, 1, 0, {"queue_full": 1})
    assert [reference() is None for reference in let_go_of] == [True, False, False]
    engine.keep_queued(is_ending=True)
    engine.submit(fakes.FakeCapture())
    assert counts(engine.stats()) == (5, 2, 1, 0, {"queue_full": 1, "shutdown": 1})


@pytest.mark.parametrize(
    ("sizes", "waiting", "dropped"),
    [((40, 40, 20, 70), 2, 2), ((100, 101), 1, 1), ((-1000, 60, 60), 1, 2)],
    ids=["as many old ones go as a large one needs", "one larger than the queue evicts nothing", "none makes room"],
)
def test_the_queue_is_bounded_by_bytes(fakes, busy_engine, sizes: tuple[int, ...], waiting: int, dropped: int):
    engine = busy_engine(queue_bytes=100)
    for size in sizes:
        engine.submit(fakes.FakeCapture(size=size))

    assert counts(engine.stats()) == (1 + len(sizes), waiting, 1, 0, {"queue_bytes": dropped})


def test_drops_are_logged_by_the_worker_and_not_where_they_happen(fakes, make_engine, caplog):
    metric = fakes.HangingMetric()
    engine = make_engine(metric, concurrency=1, queue_size=1)
    engine.submit(fakes.a_record())
    metric.wait_until_started()
    engine.submit(fakes.FakeCapture())
    engine.submit(fakes.FakeCapture())
    assert caplog.messages == []

    metric.release()
    assert engine.flush(fakes.PATIENCE)
    engine.shutdown(fakes.PATIENCE)
    assert caplog.messages == ["captures dropped so far: queue_full 1"]


def test_counts_are_conserved_under_many_threads(fakes, make_engine):
    """Sixteen threads, a queue that overflows, captures of every kind, and snapshots all the while."""
    each = 200
    kinds = [
        fakes.a_record(),
        fakes.FakeCapture(),
        fakes.FakeCapture(lambda: 1 // 0),
        fakes.FakeCapture(size=ValueError()),
        fakes.FakeCapture(size=10_000),
    ]
    engine = make_engine(fakes.ConstantMetric(), queue_size=50, queue_bytes=5_000)
    start, over = threading.Barrier(17), threading.Event()
    snapshots: list[EngineStats] = []

    def submit() -> None:
        start.wait()
        for number in range(each):
            engine.submit(kinds[number % len(kinds)])

    def watch() -> None:
        start.wait()
        while not over.is_set():
            snapshots.append(engine.stats())

    submitters = [threading.Thread(target=submit) for _ in range(16)]
    watcher = threading.Thread(target=watch)
    for thread in (*submitters, watcher):
        thread.start()
    for thread in submitters:
        thread.join()
    assert engine.flush(fakes.PATIENCE)
    over.set()
    watcher.join()

    assert all(map(is_conserved, snapshots))
    stats = engine.stats()
    assert is_conserved(stats)
    assert (stats.submitted, stats.queued, stats.in_flight) == (16 * each, 0, 0)
    assert stats.finished > 0
    assert stats.nothing_to_score > 0
    assert stats.dropped["capture_error"] >= 16 * each // len(kinds)
    assert stats.dropped["queue_bytes"] >= 16 * each // len(kinds)


def test_sigterm_waits_for_scores_unless_they_get_no_time_at_the_end(fakes, make_engine):
    handler = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    seen = []
    try:
        for seconds in (0, 1):
            make_engine(fakes.ConstantMetric(), exit_timeout=seconds)
            seen.append(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
    finally:
        signal.signal(signal.SIGTERM, handler)

    assert seen == [True, False]


def submit_interrupted_at(line: int, engine: ScoringEngine, capture: object, interrupt: Callable[[], None]) -> bool:
    """Submit, and call `interrupt` before this line of the engine's; False if there are fewer lines."""
    lines = 0

    def trace(frame: types.FrameType, event: str, _: object) -> object:
        nonlocal lines
        if "/ragspan/engine/" not in frame.f_code.co_filename:
            return None
        lines += event == "line"
        if lines == line and event == "line":
            interrupt()
            assert is_conserved(engine.stats())
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        engine.submit(capture)
    finally:
        sys.settrace(before)
    return lines >= line


def test_a_shutdown_by_a_signal_at_any_line_of_a_submit_loses_nothing_in_silence(fakes, make_engine):
    for line in range(1, 1000):
        engine = make_engine(fakes.ConstantMetric())
        is_interrupted = submit_interrupted_at(line, engine, fakes.a_record(), functools.partial(engine.shutdown, 0.02))
        engine.submit(fakes.a_record())
        engine.shutdown(fakes.PATIENCE)  # as the end of the process does

        submitted, queued, in_flight, finished, dropped = counts(engine.stats())
        assert (submitted, queued, in_flight) == (2, 0, 0)
        assert finished + sum(dropped.values()) == 2
        assert set(dropped) <= {"shutdown"}
        if not is_interrupted:
            break
    assert line > 40
