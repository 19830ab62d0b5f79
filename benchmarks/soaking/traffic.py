"""Clients that run programs, one after the other, with pauses in between: some in threads, some in one event loop."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
from collections import Counter
from collections.abc import Awaitable, Sequence
from typing import Any

from soaking.programs import Program

_THREADS, _COROUTINES = 4, 4


class Tally:
    """What the clients have done, by all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.answers = 0
        self.runs: Counter[str] = Counter()
        self.troubles: Counter[str] = Counter()

    def ran(self, program: Program, error: Exception | None = None) -> None:
        with self._lock:
            self.answers += program.answers
            self.runs[program.name] += 1
            if error is not None:
                self.troubles[f"{program.name}: {type(error).__name__}"] += 1


class Traffic:
    """Runs programs at so many a second, for as long as it is entered."""

    def __init__(
        self, synchronous: Sequence[Program], asynchronous: Sequence[Program], *, rate: float, seed: int
    ) -> None:
        self._synchronous = synchronous
        self._asynchronous = asynchronous
        self._pause = (_THREADS + _COROUTINES) / rate
        self._random = random.Random(seed)
        self._numbers = itertools.count()
        self._stopped = threading.Event()
        self.tally = Tally()
        self._threads = [threading.Thread(target=self._client) for _ in range(_THREADS)]
        self._threads.append(threading.Thread(target=lambda: asyncio.run(self._coroutine_clients())))

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        """End every client after the program that it runs."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def run(self, program: Program) -> None:
        """Run a program besides."""
        error = None
        try:
            program.run(next(self._numbers))
        except Exception as raised:  # noqa: BLE001 - none is expected; the verdict counts them
            error = raised
        self.tally.ran(program, error)

    def _client(self) -> None:
        while not self._stopped.wait(self._draw_pause()):
            self.run(self._draw(self._synchronous))

    async def _coroutine_clients(self) -> None:
        await asyncio.gather(*(self._coroutine_client() for _ in range(_COROUTINES)))

    async def _coroutine_client(self) -> None:
        while not self._stopped.is_set():
            await asyncio.sleep(self._draw_pause())
            program = self._draw(self._asynchronous)
            error = None
            try:
                await _awaitable(program.run(next(self._numbers)))
            except Exception as raised:  # noqa: BLE001 - as above
                error = raised
            self.tally.ran(program, error)

    def _draw(self, programs: Sequence[Program]) -> Program:
        [program] = self._random.choices(programs, [program.weight for program in programs])
        return program

    def _draw_pause(self) -> float:
        return self._random.uniform(0.0, 2 * self._pause)


def _awaitable(result: object) -> Awaitable[Any]:
    assert isinstance(result, Awaitable)
    return result
