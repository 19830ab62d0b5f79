"""Has the helper score metrics whose judges compute, and keeps one helper running.

A helper that ends is replaced when it is needed next, two seconds after its start at the soonest. Its questions are asked again, one
by one. One that a second helper dies over is a failure: what kills helpers may kill the application.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import itertools
import math
import pickle
import pickletools
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from ragspan.engine.helper.process import HelperProcess
from ragspan.engine.helper.serving import Message, messages_of, send
from ragspan.engine.metric_judges import are_cpu_bound, spenders_of
from ragspan.engine.threads import call_guarded
from ragspan.judges.session import JudgingSession
from ragspan.metrics.metric import Metric
from ragspan.outcomes import MetricFailure, Outcome
from ragspan.records import RagRecord
from ragspan.throttled_log import ThrottledLog

_MAX_START = 30.0  # seconds until a new helper must be ready
_MAX_SILENCE = 120.0  # seconds until one that answers nothing is killed; loading a classifier's model takes a while
_PAUSE, _PAUSE_OF_FAILURE = 2.0, 60.0  # seconds from one start to the next, and from one that failed
Take: TypeAlias = Callable[[int, Outcome], Awaitable[None]]
_NO_HELPER = (
    "there is no helper process: %s. Judges compute in a thread of the application, where the slowest responses (p99) "
    "may take twice as long"
)


class HelperClient:
    """The metrics that the helper scores, the helper, and the questions that it has not answered; all in the worker's event loop.

    Time limits and fallbacks stay in the application. A metric that has run out of time is cancelled in the helper.
    """

    def __init__(self, log: ThrottledLog) -> None:
        self._log = log
        self._metrics: list[Metric] = []
        self._numbers = itertools.count(1)
        self._next_start = self._heard = 0.0
        self._cannot_start = False
        self._open: dict[int, asyncio.Queue[Message | None]] = {}
        self._start: asyncio.Task[bool] | None = None
        """Whether the helper that was started last is ready; None where there is none."""
        self.process: HelperProcess | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._one_by_one = asyncio.Lock()

    def add(self, metric: Metric) -> int | None:
        """The number under which the helper scores this metric; None if the application scores it.

        It goes there if its judges all say whether they are `cpu_bound`, none spends money, and it pickles.
        """
        said = are_cpu_bound(metric)
        if not said or None in said or any(spenders_of(metric)) or not inspect.iscoroutinefunction(metric.score):
            return None
        pickled, error = call_guarded(pickle.dumps, metric)
        reason = f"{type(error).__name__}: {error}"
        if any(argument == "__main__" for _, argument, _ in pickletools.genops(pickled or pickle.dumps(None))):
            reason = "it is defined in the main module, which is not run again there"
        elif error is None:
            self._metrics.append(metric)
            return len(self._metrics) - 1
        if any(said):
            message = "metric %s is scored in a thread of the application, not in the helper: %s"
            self._log.report(f"unfit {metric.name}", message, metric.name, reason)
        return None

    async def score(self, numbers: Iterable[int], record: RagRecord, session: JudgingSession, take: Take) -> None:
        """Score the record by the metrics with these numbers: `take` gets each outcome as it comes; none if no helper can be started now."""
        left, packed = set(numbers), record.to_json().encode()
        try:
            await self._ask(left, packed, session, take)
        except ConnectionResetError:
            async with self._one_by_one:
                try:
                    await self._ask(left, packed, session, take)
                except ConnectionResetError:
                    words = "the helper process died while it scored this record"
                    for number in left:
                        await take(number, MetricFailure(error_type="helper_died", message=words))

    def close(self, timeout: float = 1.0) -> None:
        """End the helper; it is killed if that takes more than the timeout. The next event loop may ask for another one."""
        process, writer = self.process, self._writer
        self.process = self._writer = self._start = None
        self._one_by_one = asyncio.Lock()
        if writer is not None:
            writer.transport.abort()
        if process is not None:
            process.end(timeout)

    async def _ask(self, left: set[int], packed: bytes, session: JudgingSession, take: Take) -> None:
        """Have these metrics score, and take out of `left` those that have. If this is cancelled, the helper cancels its work on it."""
        if not await self._is_ready():
            return
        if not self._open:
            self._heard = time.monotonic()
        number = next(self._numbers)
        answers = self._send(Message(number, packed, tuple(left)))
        try:
            while left:
                if (answer := await answers.get()) is None:
                    raise ConnectionResetError
                session.get_or_make("about", functools.partial(getattr, answer, "about"))
                for metric, outcome in answer.outcomes.items():
                    left.discard(metric)
                    await take(metric, pickle.loads(outcome))  # noqa: S301 - our helper's
        except asyncio.CancelledError:
            process, writer = self.process, self._writer
            if process is not None and writer is not None:
                send(writer, Message(number))
                if time.monotonic() - self._heard >= _MAX_SILENCE:
                    process.kill()
                    writer.transport.abort()  # its children, if it has any, may keep its end of the socket open
            raise
        finally:
            self._open.pop(number, None)

    async def _is_ready(self) -> bool:
        """Wait for a helper, and start one if there is none; False if none can be started."""
        while self._start is None and (wait := self._next_start - time.monotonic()) > 0:
            if self._cannot_start:
                return False
            await asyncio.sleep(wait)
        self._start = self._start or asyncio.get_running_loop().create_task(self._start_helper())
        return await asyncio.shield(self._start)

    def _send(self, question: Message) -> asyncio.Queue[Message | None]:
        """Where its answers come; None where the helper has ended."""
        if self._writer is None:
            raise ConnectionResetError
        answers = self._open[question.number] = asyncio.Queue()
        send(self._writer, question)
        return answers

    async def _start_helper(self) -> bool:
        """Whether it is ready. Where none can be started, a thread of the application computes, and it is tried again after a while."""
        self._next_start, pause = time.monotonic() + _PAUSE, _PAUSE_OF_FAILURE
        try:
            self.process = HelperProcess()
            reader, self._writer = await asyncio.open_connection(sock=self.process.socket)
            self._reading = asyncio.get_running_loop().create_task(self._read(reader, self._writer))
            answers = self._send(Message(0, pickle.dumps(self._metrics)))
            answer = await asyncio.wait_for(answers.get(), _MAX_START)
            self._open.pop(0, None)
            problem = "it ended at once" if answer is None else answer.refusal
        except Exception as error:  # noqa: BLE001 - of the system, or of a metric that has changed
            problem = str(error) or f"it was not ready within {_MAX_START:g} s"
            pause = math.inf if isinstance(error, RuntimeError) else pause
        self._cannot_start = problem is not None
        if problem is not None:
            self.close(0.0)
            self._next_start = time.monotonic() + pause
            self._log.report("no helper", _NO_HELPER, problem)
        return problem is None

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for message in messages_of(reader):
            self._heard = time.monotonic()
            if (answers := self._open.get(message.number)) is not None:  # else it is cancelled
                answers.put_nowait(message)
        if writer is not self._writer:  # it was closed here
            return
        lost, self._open = self._open, {}
        if self._start is not None and self._start.done():
            self.close(0.0)
            self._log.count("helper")
            self._log.report("helper died", "the helper process ended unexpectedly; another one takes its place")
        for answers in lost.values():
            answers.put_nowait(None)
