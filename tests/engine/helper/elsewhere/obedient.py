"""A judge, metrics and emitters that a helper process can import: it does not see what tests define."""

from __future__ import annotations

import inspect
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from ragspan.exceptions import JudgeError
from ragspan.judges.session import report_usage, reserve
from ragspan.outcomes import Score
from ragspan.usage import Usage


@dataclass
class ObedientJudge:
    """Does where it computes what a record's question says."""

    cpu_bound = True
    baggage: object = None
    """Something that has to travel with it."""

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

    def fail(self, _):
        raise JudgeError("too_hard", "nobody knows")

    def exit(self, _):
        raise SystemExit(1)

    def crash(self, _):
        os._exit(3)

    def block(self, folder):
        """Say where it is at work by the pipe `started`, and block until something comes by the pipe `go`."""
        (Path(folder) / "started").write_text(f"{os.getpid()} ")
        with (Path(folder) / "go").open("rb", buffering=0) as go:
            return go.read(1)


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
class Obeying:
    """A metric that explains its score by what its judge returned."""

    judge: ObedientJudge = field(default_factory=ObedientJudge)
    args: tuple[object, ...] = ()
    name: str = "obeying"

    async def score(self, record):
        answer = await self.judge.obey(record, *self.args)
        return answer if isinstance(answer, Score) else Score(value=1.0, explanation=str(answer))
