"""Deadlines, steps, and threads that nobody waits for."""

from __future__ import annotations

import asyncio
import itertools
import math
import threading
import time
import weakref
from collections.abc import Iterator

import pytest

from ragspan.engine.threads import DaemonThreads, Deadline, ReentrantCriticalSection, run_in_loop, step

PATIENCE = 120.0

_numbers = itertools.count()


@pytest.fixture
def threads() -> Iterator[DaemonThreads]:
    pool = DaemonThreads(2, name=f"pool {next(_numbers)}")  # those of other tests may still be about to end
    yield pool
    pool.shutdown(cancel_futures=True)


def alive(pool: DaemonThreads) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == pool.name]


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

    assert len(threads._calls) <= 1
    gate.set()


class Kept:
    """Something that could be kept for too long."""


def is_let_go_of(reference: weakref.ref[Kept]) -> bool:
    """The thread needs a moment for it after it has handed over the result."""
    began = time.monotonic()
    while reference() is not None and time.monotonic() - began < PATIENCE:
        pass
    return reference() is None


def test_what_is_left_shrinks_to_nothing(clock):
    deadline = Deadline(2.0, clock=clock)
    left = []
    for _ in range(4):
        left.append(deadline.remaining)
        clock.advance(0.75)

    assert left == [2.0, 1.25, 0.5, 0.0]
    assert deadline.elapsed == 3.0


@pytest.mark.parametrize(("timeout", "left"), [(-1.0, 0.0), (math.inf, threading.TIMEOUT_MAX)])
def test_what_is_left_is_always_a_time_that_locks_can_wait(clock, timeout: float, left: float):
    assert Deadline(timeout, clock=clock).remaining == left


@pytest.mark.parametrize(("timeout", "reserve"), [(0.0, 0.0), (2.0, 0.2), (10.0, 1.0), (60.0, 1.0)])
def test_the_reserve_is_a_tenth_and_a_second_at_most(clock, timeout: float, reserve: float):
    deadline = Deadline(timeout, clock=clock)
    earlier = deadline.minus_reserve()

    assert deadline.remaining - earlier.remaining == pytest.approx(reserve)
    clock.advance(timeout / 2)
    assert earlier.remaining == pytest.approx(max(0.0, timeout / 2 - reserve))


class Section(ReentrantCriticalSection):
    """Runs whatever it is given as a step."""

    @step
    def run(self, call, *args):
        return call(*args)


def test_what_a_step_put_off_returns_is_let_go_of_outside_the_lock():
    section = Section()
    let_go_of: list[bool] = []

    class Finalised:
        def __del__(self) -> None:
            others = threading.Thread(target=lambda: let_go_of.append(section.run(bool, 1) is True))
            others.start()
            others.join(10)

    def outer() -> None:
        section.run(Finalised)

    section.run(outer)

    assert let_go_of == [True]


def test_a_signal_handler_can_ask_threads_that_are_just_being_started(threads: DaemonThreads, monkeypatch):
    """As SIGTERM does where it comes while the end of the process already flushes."""
    start = threading.Thread.start
    interrupts = iter([True])

    def interrupted(thread: threading.Thread) -> None:
        if next(interrupts, False):
            assert threads.submit(int).result(PATIENCE) == 0
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", interrupted)

    assert threads.submit(int).result(PATIENCE) == 0


def test_a_fork_leaves_the_event_loops_of_the_parents_threads_alone(run_script):
    """Also where the child collects them."""
    done = run_script(
        """
        import asyncio, gc, os, time, warnings
        warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
        from ragspan.engine.threads import DaemonThreads, run_in_loop

        async def waits_for_a_thread():
            return await asyncio.to_thread(lambda: time.sleep(0.1) or 1)

        threads = DaemonThreads(1, name="test")
        print(threads.submit(run_in_loop, waits_for_a_thread).result(30))
        if not os.fork():
            gc.collect()
            os._exit(0)
        os.wait()
        print(threads.submit(run_in_loop, waits_for_a_thread).result(30))
        """
    )

    assert done.stdout.splitlines() == ["1", "1"]


async def test_what_computes_runs_also_where_the_thread_has_a_loop_already():
    """As all threads of gevent have that are one thread."""

    async def computes(number: int) -> int:
        return number + 1

    async def waits() -> None:
        await asyncio.sleep(0)

    assert run_in_loop(computes, 1) == 2
    with pytest.raises(RuntimeError, match="RAGSPAN_JUDGING=helper"):
        run_in_loop(waits)
