"""A judge, metrics and emitters that a helper process can import: it does not see what tests define."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

from ragspan.exceptions import JudgeError
from ragspan.judges.session import report_usage, reserve
from ragspan.outcomes import Score
from ragspan.usage import Usage


class UnspeakableError(Exception):
    """One that raises when it is printed."""

    def __str__(self):
        raise LookupError


@dataclass
class ObedientJudge:
    """Does where it computes what a record's question says."""

    cpu_bound = True
    baggage: object = None
    """Something that has to travel with it."""
    asked: int = field(default=0, compare=False)

    async def obey(self, record, *args):
        command, _, argument = record.question.partition(" ")
        answer = getattr(self, command)(argument or record, *args)
        return await answer if inspect.isawaitable(answer) else answer

    def tell_process(self, _):
        return os.getpid()

    def tell_modules(self, _):
        return sorted(sys.modules)

    def return_arguments(self, _, *args):
        return args

    def return_what_does_not_pickle(self, _):
        return Score(value=1.0, explanation=str(os.getpid()), evidence=(threading.Lock(),))

    def fail(self, _):
        raise JudgeError("too_hard", "nobody knows")

    def raise_anything(self, _):
        raise LookupError("not there")

    def raise_what_has_no_text(self, _):
        raise UnspeakableError

    def fail_by_an_outage(self, _):
        raise JudgeError("model_unavailable", "its files are not there", outage=True)

    def exit(self, _):
        raise SystemExit(1)

    def crash(self, _):
        os._exit(3)

    def kill_process(self, _):
        os.kill(os.getpid(), signal.SIGKILL)

    def block(self, folder):
        """Say where it is at work by the pipe `started`, and block until something comes by the pipe `go`."""
        (Path(folder) / "started").write_text(f"{os.getpid()} ")
        with (Path(folder) / "go").open("rb", buffering=0) as go:
            return go.read(1)

    def loop_forever(self, _):
        while True:
            pass

    def remember(self, _):
        self.asked += 1
        return self.asked


@dataclass
class PaidJudge(ObedientJudge):
    name: str = "paid"
    price: None = None

    def pay(self, used):
        """Expect 10 tokens, and use as many as it is told."""
        settle = reserve(Usage(requests=1, input_tokens=10))
        settle(Usage(requests=1, input_tokens=int(used)))
        report_usage(Usage(requests=1, input_tokens=int(used)))
        return os.getpid()


@dataclass
class WaitingJudge:
    """Waits in the event loop that it is asked in, as one does whose work is done in a thread of its own."""

    cpu_bound = False
    baggage: object = None
    waiting: int = field(default=0, compare=False)
    _have_met: asyncio.Event = field(default_factory=asyncio.Event, compare=False)

    def __reduce__(self):
        return WaitingJudge, (self.baggage,)

    async def obey(self, record):
        self.waiting += 1
        try:
            return await getattr(self, record.question.partition(" ")[0])()
        finally:
            self.waiting -= 1

    async def wait_for_ever(self):
        await asyncio.Event().wait()

    async def meet(self):
        """Wait until another one waits."""
        if self.waiting > 1:
            self._have_met.set()
        await self._have_met.wait()
        return threading.current_thread().name

    async def count_waiting(self):
        """Those that still wait when all that was decided so far has been done; this one is no such."""
        for _ in range(10):
            await asyncio.sleep(0)
        return self.waiting - 1


@dataclass
class Obeying:
    """A metric that explains its score by what its judge returned."""

    judge: ObedientJudge | WaitingJudge = field(default_factory=ObedientJudge)
    args: tuple[object, ...] = ()
    name: str = "obeying"

    async def score(self, record):
        answer = await self.judge.obey(record, *self.args)
        return answer if isinstance(answer, Score) else Score(value=1.0, explanation=str(answer))
