"""Has the helper score metrics whose judges compute, and keeps one helper running.

A helper that ends is replaced when it is needed next, two seconds after its start at the soonest. Its questions are asked again, one
by one. One that a second helper dies over is a failure: what kills helpers may kill the application.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import math
import pickle
import pickletools
import time

from ragspan.engine.helper.process import HelperProcess
from ragspan.engine.helper.serving import Message, messages_of, send
from ragspan.engine.metric_judges import are_cpu_bound, spenders_of
from ragspan.engine.threads import call_guarded
from ragspan.exceptions import JudgeError
from ragspan.judges.session import session_of
from ragspan.metrics.metric import Metric
from ragspan.outcomes import Outcome
from ragspan.records import RagRecord
from ragspan.throttled_log import ThrottledLog

_MAX_START = 30.0  # seconds until a new helper must be ready
_MAX_SILENCE = 120.0  # seconds until one that answers nothing is killed; loading a classifier's model takes a while
_PAUSE, _PAUSE_OF_FAILURE = 2.0, 60.0  # seconds from one start to the next, and from one that failed
_NO_HELPER = (
    "there is no helper process: %s. Judges compute in a thread of the application, where the slowest responses (p99) "
    "may take many times as long"
)


class HelperClient:
    """The metrics that the helper scores, the helper, and the questions that it has not answered; all in the worker's event loop.

    Time limits and fallbacks stay in the application. A metric that has run out of time is cancelled in the helper.
    """

    def __init__(self, log: ThrottledLog) -> None:
        self._log = log
        self._metrics: list[Metric] = []
        self._sessions, self._numbers = itertools.count(), itertools.count(1)
        self._next_start = self._heard = 0.0
        self._cannot_start = False
        self._open: dict[int, asyncio.Future[Message]] = {}
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

    async def score(self, number: int, record: RagRecord) -> Outcome | None:
        """The outcome of the metric with this number; None if no helper can be started now. A `JudgeError` if helpers died over it."""
        session = session_of(record)
        packed = session.get_or_make(self, lambda: (next(self._sessions), record.to_json().encode()))
        try:
            answer = await self._ask(number, *packed)
        except ConnectionResetError:
            async with self._one_by_one:
                try:
                    answer = await self._ask(number, *packed)
                except ConnectionResetError:
                    words = "the helper process died while it scored this record"
                    raise JudgeError("helper_died", words) from None
        if answer is None:
            return None
        if answer.refusal is not None:
            raise JudgeError("helper_refused", answer.refusal)
        about, outcome = pickle.loads(answer.content)  # noqa: S301 - our helper's
        session.get_or_make("about", lambda: about)
        return outcome  # type: ignore[no-any-return]

    def close(self, timeout: float = 1.0) -> None:
        """End the helper; it is killed if that takes more than the timeout. The next event loop may ask for another one."""
        process, writer = self.process, self._writer
        self.process = self._writer = self._start = None
        self._one_by_one = asyncio.Lock()
        if writer is not None:
            writer.transport.abort()
        if process is not None:
            process.end(timeout)

    async def _ask(self, metric: int, session: int, record: bytes) -> Message | None:
        while self._start is None and (wait := self._next_start - time.monotonic()) > 0:
            if self._cannot_start:
                return None
            await asyncio.sleep(wait)
        if self._start is None:
            self._start = asyncio.get_running_loop().create_task(self._start_helper())
        if not await asyncio.shield(self._start):
            return None
        if not self._open:
            self._heard = time.monotonic()
        return await self._send(Message(next(self._numbers), record, metric, session))

    async def _send(self, question: Message) -> Message:
        """The answer. If this is cancelled, the helper cancels its work on it."""
        process, writer = self.process, self._writer
        if process is None or writer is None:
            raise ConnectionResetError
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._open[question.number] = answer
        try:
            send(writer, question)
            return await answer
        except asyncio.CancelledError:
            self._open.pop(question.number, None)
            send(writer, Message(question.number))
            if time.monotonic() - self._heard >= _MAX_SILENCE:
                process.kill()
                writer.transport.abort()  # its children, if it has any, may keep its end of the socket open
            raise

    async def _start_helper(self) -> bool:
        """Whether it is ready. Where none can be started, a thread of the application computes, and it is tried again after a while."""
        self._next_start, pause = time.monotonic() + _PAUSE, _PAUSE_OF_FAILURE
        try:
            self.process = HelperProcess()
            reader, self._writer = await asyncio.open_connection(sock=self.process.socket)
            self._reading = asyncio.get_running_loop().create_task(self._read(reader, self._writer))
            problem = (await asyncio.wait_for(self._send(Message(0, pickle.dumps(self._metrics))), _MAX_START)).refusal
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
            if (
                answer := self._open.pop(message.number, None)
            ) is not None and not answer.done():  # else it is cancelled
                answer.set_result(message)
        if writer is not self._writer:  # it was closed here
            return
        lost, self._open = self._open, {}
        if self._start is not None and self._start.done():
            self.close(0.0)
            self._log.count("helper")
            self._log.report("helper died", "the helper process ended unexpectedly; another one takes its place")
        for answer in lost.values():
            if not answer.done():
                answer.set_exception(ConnectionResetError("it ended at once"))
