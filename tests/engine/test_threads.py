"""Deadlines, steps, and threads that nobody waits for."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator

import pytest

from ragspan.engine.threads import DaemonThreads, Deadline, run_in_loop

_numbers = itertools.count()


@pytest.fixture
def threads() -> Iterator[DaemonThreads]:
    pool = DaemonThreads(2, name=f"pool {next(_numbers)}")  # those of other tests may still be about to end
    yield pool
    pool.shutdown(cancel_futures=True)


def test_what_is_left_shrinks_to_nothing(clock):
    deadline = Deadline(2.0, clock=clock)
    left = []
    for _ in range(4):
        left.append(deadline.remaining)
        clock.advance(0.75)

    assert left == [2.0, 1.25, 0.5, 0.0]
    assert deadline.elapsed == 3.0


@pytest.mark.parametrize(("timeout", "reserve"), [(0.0, 0.0), (2.0, 0.2), (10.0, 1.0), (60.0, 1.0)])
def test_the_reserve_is_a_tenth_and_a_second_at_most(clock, timeout: float, reserve: float):
    deadline = Deadline(timeout, clock=clock)
    earlier = deadline.minus_reserve()

    assert deadline.remaining - earlier.remaining == pytest.approx(reserve)
    clock.advance(timeout / 2)
    assert earlier.remaining == pytest.approx(max(0.0, timeout / 2 - reserve))


async def test_what_computes_runs_also_where_the_thread_has_a_loop_already():
    """As all threads of gevent have that are one thread."""

    async def computes(number: int) -> int:
        return number + 1

    async def waits() -> None:
        await asyncio.sleep(0)

    assert run_in_loop(computes, 1) == 2
    with pytest.raises(RuntimeError, match="RAGSPAN_JUDGING=helper"):
        run_in_loop(waits)
