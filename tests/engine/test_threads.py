"""Deadlines, steps, and threads that nobody waits for."""

from __future__ import annotations

import asyncio

import pytest

from ragspan.engine.threads import run_in_loop


async def test_what_computes_runs_also_where_the_thread_has_a_loop_already():
    """As all threads of gevent have that are one thread."""

    async def computes(number: int) -> int:
        return number + 1

    async def waits() -> None:
        await asyncio.sleep(0)

    assert run_in_loop(computes, 1) == 2
    with pytest.raises(RuntimeError, match="RAGSPAN_JUDGING=helper"):
        run_in_loop(waits)
