from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator

import pytest

from ragspan.engine._threads import DaemonThreads

PATIENCE = 20.0


@pytest.fixture
def threads() -> Iterator[DaemonThreads]:
    pool = DaemonThreads(2, name="pool")
    yield pool
    pool.shutdown(cancel_futures=True)


def alive() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "pool"]


def test_a_call_returns_its_result(threads: DaemonThreads):
    assert threads.submit(int, "ff", base=16).result(PATIENCE) == 255


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_what_a_call_raises_is_its_callers_and_ends_no_thread(threads: DaemonThreads, error: type[BaseException]):
    ran_in = []

    def fail() -> None:
        ran_in.append(threading.current_thread())
        raise error

    assert isinstance(threads.submit(fail).exception(PATIENCE), error)
    assert threads.submit(int).result(PATIENCE) == 0
    assert ran_in[0] in alive()


def test_threads_are_daemons_and_kept_for_the_next_call(threads: DaemonThreads):
    first = threads.submit(threading.current_thread).result(PATIENCE)
    assert first.daemon
    gate = threading.Event()
    busy = [threads.submit(gate.wait, PATIENCE) for _ in range(4)]
    gate.set()

    assert [call.result(PATIENCE) for call in busy] == [True] * 4
    assert first in alive()
    assert len(alive()) == 2


def test_calls_beyond_the_limit_wait_in_line(threads: DaemonThreads):
    gate = threading.Event()
    order: list[int] = []
    busy = [threads.submit(gate.wait, PATIENCE) for _ in range(2)]
    waiting = [threads.submit(order.append, number) for number in range(3)]
    assert not any(call.running() or call.done() for call in waiting)
    gate.set()
    for call in (*busy, *waiting):
        call.result(PATIENCE)

    assert sorted(order) == [0, 1, 2]


def test_calls_that_were_cancelled_leave_the_line(threads: DaemonThreads):
    gate = threading.Event()
    started = threading.Barrier(3)

    def hang() -> None:
        started.wait(PATIENCE)
        gate.wait(PATIENCE)

    for _ in range(2):
        threads.submit(hang)
    started.wait(PATIENCE)
    for _ in range(100):
        assert threads.submit(int).cancel()

    assert len(threads._line) <= 1
    gate.set()


def test_after_its_end_it_takes_no_calls(threads: DaemonThreads):
    threads.shutdown()

    assert "shut down" in str(threads.submit(int).exception(PATIENCE))


def test_its_end_lets_the_calls_in_line_be_made(threads: DaemonThreads):
    gate = threading.Event()
    calls = [threads.submit(gate.wait, PATIENCE) for _ in range(4)]
    threads.shutdown()
    gate.set()

    assert [call.result(PATIENCE) for call in calls] == [True] * 4


class Kept:
    """Something that could be kept for too long."""


def test_an_idle_thread_keeps_no_argument_of_its_last_call(threads: DaemonThreads):
    argument = Kept()
    reference = weakref.ref(argument)
    threads.submit(id, argument).result(PATIENCE)
    del argument

    assert is_let_go_of(reference)


def test_an_idle_thread_keeps_no_result_of_its_last_call(threads: DaemonThreads):
    reference = weakref.ref(threads.submit(Kept).result(PATIENCE))

    assert is_let_go_of(reference)


def is_let_go_of(reference: weakref.ref[Kept]) -> bool:
    """The thread needs a moment for it after it has handed over the result."""
    began = time.monotonic()
    while reference() is not None and time.monotonic() - began < PATIENCE:
        pass
    return reference() is None
