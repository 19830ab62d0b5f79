"""Has the helper score metrics whose judges compute, and keeps one helper running.

Guarantees:
- A metric goes there if its judges all say whether they are `cpu_bound`, none of them spends money, and the helper can
  make a copy of it. The application scores all other metrics.
- A helper that ends is replaced when it is needed next. After one that lived for less than a minute, and after a failed start, there
  is a pause first: a second, doubled each time, up to a minute. Where no helper can be started, a thread of the application computes,
  and the log says so. Where helpers die, questions wait for the next one: what kills helpers may kill the application.
- The questions of a helper that dies are asked again, one by one. One that a second helper dies over is a failure, and counted.
- A helper that answers nothing for two minutes is killed when a question is given up, and counts as dead.
- Time limits and fallbacks stay in the application. A metric that has run out of time is cancelled in the helper.

All of it runs in the worker's event loop.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import pickle
import pickletools
from collections.abc import Callable, Sequence

from ragspan.backoff import Backoff
from ragspan.engine.helper.messages import Connection, ToApplication, ToHelper, pack
from ragspan.engine.helper.process import HelperProcess, NoHelperPossible
from ragspan.engine.metric_judges import are_cpu_bound, spenders_of
from ragspan.engine.threads import call_guarded
from ragspan.exceptions import JudgeError
from ragspan.judges.session import session_of
from ragspan.metrics.metric import Metric
from ragspan.outcomes import Outcome
from ragspan.records import RagRecord
from ragspan.text.turns import give_turns
from ragspan.throttled_log import ThrottledLog

_MAX_START = 30.0  # seconds until a new helper must be ready
_MAX_SILENCE = 120.0  # seconds; loading a classifier's model takes a while
_LONG_LIFE = 60.0  # seconds
_AT_ONCE = "it ended at once"


class HelperUnavailable(Exception):  # noqa: N818 - a fact for the caller, not a mistake
    """No helper can be started now."""


class _HelperLost(Exception):  # noqa: N818 - likewise
    """The helper died before it answered."""


class HelperClient:
    """The metrics of an engine that its helper scores, and the helper."""

    def __init__(self, log: ThrottledLog) -> None:
        self._log = log
        self._metrics: list[Metric] = []
        self._sessions = itertools.count()
        self._pause = Backoff(first=1.0, longest=60.0)
        self._cannot_start = False
        """The last start has failed; else helpers have died."""
        self._is_impossible = False
        self.close()

    def add(self, metric: Metric) -> int | None:
        """The number under which the helper scores this metric; None if the application scores it."""
        said = are_cpu_bound(metric)
        if not said or None in said or any(spenders_of(metric)) or not inspect.iscoroutinefunction(metric.score):
            return None
        reason = _reason_not_to_send(metric)
        if reason is not None:
            if any(said):
                message = "metric %s is scored in a thread of the application, not in the helper: %s"
                self._log.report(f"unfit {metric.name}", message, metric.name, reason)
            return None
        self._metrics.append(metric)
        return len(self._metrics) - 1

    async def score(self, number: int, record: RagRecord) -> Outcome:
        """The outcome of the metric with this number.

        Raises:
            HelperUnavailable: the application has to score it.
            JudgeError: helpers died over it, or the outcome does not pickle.
        """
        session = session_of(record)
        packed = session.get_or_make(self, lambda: (next(self._sessions), pack(record)))
        try:
            answer = await (await self._ready_helper()).ask(number, *packed)
        except _HelperLost:
            answer = await self._ask_again(number, *packed)
        if answer.refusal is not None:
            raise JudgeError("helper_refused", answer.refusal)
        about, outcome = pickle.loads(answer.content)  # noqa: S301 - our helper's
        session.get_or_make("about", lambda: about)
        return outcome  # type: ignore[no-any-return]

    @property
    def pid(self) -> int | None:
        return None if self._helper is None else self._helper.process.pid

    def close(self) -> None:
        """End the helper; it is killed if that takes more than a second. The next event loop may ask for another one."""
        helper: _Helper | None = getattr(self, "_helper", None)
        self._helper: _Helper | None = None
        self._one_by_one = asyncio.Lock()
        if helper is not None:
            helper.end(1.0)

    async def _ask_again(self, number: int, session: int, packed: bytes) -> ToApplication:
        async with self._one_by_one:
            while True:
                try:
                    helper = await self._ready_helper()
                    return await helper.ask(number, session, packed)
                except HelperUnavailable:  # noqa: PERF203 - a pause is not short
                    await asyncio.sleep(self._pause.remaining)
                except _HelperLost:
                    raise JudgeError("helper_died", "the helper process died while it scored this record") from None

    async def _ready_helper(self) -> _Helper:
        while not self._is_impossible:
            if self._helper is None and (pause := self._pause.remaining):
                if self._cannot_start:
                    break
                await asyncio.sleep(pause)
                continue
            try:
                helper = self._helper = self._helper or _Helper(self._metrics, self._lost)
            except (OSError, RuntimeError) as error:
                self._is_impossible = isinstance(error, NoHelperPossible)
                self._failed_to_start(str(error))
                break
            problem = await asyncio.shield(helper.start)
            if problem is None:
                return helper
            if helper is self._helper:
                self._helper = None
                status = helper.end(0.0 if problem != _AT_ONCE else 1.0)
                self._failed_to_start(problem + (f", with the status {status}" if problem == _AT_ONCE else ""))
        raise HelperUnavailable

    def _failed_to_start(self, reason: str) -> None:
        self._pause.refused()
        self._cannot_start = True
        give_turns()
        again = "" if self._is_impossible else f"; the next start is in {self._pause.remaining:.0f} s"
        self._log.report(
            "no helper",
            "there is no helper process: %s. Judges compute in a thread of the application, where the slowest responses (p99) may take "
            "many times as long%s",
            reason,
            again,
        )

    def _lost(self, helper: _Helper) -> None:
        """It has died, or ended because it had nothing to do."""
        if helper is not self._helper or not helper.is_ready:
            return
        self._helper, self._cannot_start = None, False
        helper.end(0.0)
        if not helper.open:
            return
        self._log.count("helper")
        how = "hung" if helper.is_hung else "ended unexpectedly"
        self._log.report("helper died", "the helper process %s; another one takes its place", how)
        if helper.age > _LONG_LIFE:
            self._pause.succeeded()
        else:
            self._pause.refused()


class _Helper:
    """One helper process, from its start to its end, and the questions that it has not answered.

    Raises:
        OSError: the process cannot be started; see `HelperProcess`, which names the other errors.
    """

    def __init__(self, metrics: Sequence[Metric], on_lost: Callable[[_Helper], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_lost = on_lost
        self._numbers = itertools.count(1)
        self._served: asyncio.Future[str | None] = self._loop.create_future()
        self._began = self._heard = self._loop.time()
        self._connection = Connection(ToApplication, on_message=self._received, on_lost=self._ended)
        self.open: dict[int, asyncio.Future[ToApplication]] = {}
        self.is_ready = self.is_hung = self.is_lost = False
        self.process = HelperProcess()
        self.start = self._loop.create_task(self._start(metrics))
        """Done when the helper is ready, or will not be: None, or why not."""

    @property
    def age(self) -> float:
        return self._loop.time() - self._began

    async def ask(self, metric: int, session: int, record: bytes) -> ToApplication:
        """Send a question at once. If this is cancelled, the helper cancels its work on it.

        Raises:
            _HelperLost: the helper died before it answered.
        """
        if self.is_lost:
            raise _HelperLost
        if not self.open:
            self._heard = self._loop.time()
        number = next(self._numbers)
        answer: asyncio.Future[ToApplication] = self._loop.create_future()
        self.open[number] = answer
        self._connection.send(ToHelper(number, record, metric, session))
        try:
            return await answer
        except asyncio.CancelledError:
            self._connection.send(ToHelper(number))
            if self._loop.time() - self._heard >= _MAX_SILENCE:
                self.is_hung = True
                self.process.kill()
                self._connection.close()  # its children, if it has any, may keep its end of the socket open
            raise

    def end(self, timeout: float) -> int | None:
        """Close the connection, wait for the helper to end, kill it when the time is over; its exit status."""
        self._connection.close()
        return self.process.end(timeout)

    async def _start(self, metrics: Sequence[Metric]) -> str | None:
        try:
            await self._loop.create_connection(lambda: self._connection, sock=self.process.socket)
            self._connection.send(ToHelper(0, pickle.dumps(metrics)))
            problem = await asyncio.wait_for(asyncio.shield(self._served), _MAX_START)
        except asyncio.TimeoutError:
            problem = "it was not ready in time"
        except Exception as error:  # noqa: BLE001 - of the system, or of a metric that has changed
            problem = str(error) or type(error).__name__
        self.is_ready = problem is None
        return problem

    def _received(self, message: ToApplication) -> None:
        self._heard = self._loop.time()
        if not message.number:
            self._served.set_result(message.refusal)
        elif not (answer := self.open.pop(message.number)).done():  # else it is cancelled
            answer.set_result(message)

    def _ended(self) -> None:
        self.is_lost = True
        if not self._served.done():
            self._served.set_result(_AT_ONCE)
        self._on_lost(self)  # before the questions end, so that they are asked again elsewhere
        for answer in self.open.values():
            if not answer.done():
                answer.set_exception(_HelperLost())
        self.open.clear()


def _reason_not_to_send(metric: Metric) -> str | None:
    """Why the helper cannot make a copy of the metric; None if it can."""
    pickled, error = call_guarded(pickle.dumps, metric)
    if pickled is not None and all(argument != "__main__" for _, argument, _ in pickletools.genops(pickled)):
        return None
    return (
        "it is defined in the main module, which is not run again there"
        if error is None
        else f"{type(error).__name__}: {error}"
    )
