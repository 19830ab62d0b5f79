"""Has metrics scored by the helper: one message a record, with which all of its metrics go, and a stream of outcomes back.

Guarantees:
- A metric goes there if its judges say whether they are `cpu_bound`, and if the helper can make a copy of it. Others, and
  all while there is no helper, are scored in the application.
- A metric over which helpers died fails. It is not tried in the application, which it would kill as well.
- What is spent there counts here: a judge asks for its allowance, and tells what it used, by messages.
- A metric that nobody waits for any more is told to stop.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import pickle
from dataclasses import dataclass, field
from typing import Any

from ragspan.engine._judges import are_cpu_bound
from ragspan.engine._threads import call_guarded
from ragspan.engine.helper import serialization
from ragspan.engine.helper.client import HelperClient, HelperUnavailable
from ragspan.engine.helper.connection import Helper, HelperLost, HelperRefusal
from ragspan.exceptions import JudgeError
from ragspan.judges.session import Allowance, JudgingSession, Reservation, UsageMeter, session_of
from ragspan.metrics.base import Metric
from ragspan.outcomes import Outcome, Usage
from ragspan.records import RagRecord
from ragspan.throttled_log import ThrottledLog

_MAX_RECORDS = 64  # that the helper has not answered: enough to keep it busy


class HelperScoring:
    """The metrics of an engine that its helper scores."""

    def __init__(self, log: ThrottledLog) -> None:
        self._log = log
        self._metrics: list[Metric] = []
        self._pickled: dict[int, bytes] = {}
        self.client = HelperClient(
            self._init_message,
            max_questions=_MAX_RECORDS,
            log=log,
            on_ready=self._keep_here,
        )

    def add(self, metric: Metric) -> int | None:
        """The number under which the helper scores this metric; None if it is for the application."""
        judges = are_cpu_bound(metric)
        if not judges or None in judges or not inspect.iscoroutinefunction(metric.score):
            return None
        number = len(self._metrics)
        self._metrics.append(metric)
        pickled, error = call_guarded(pickle.dumps, metric)
        if pickled is None:
            self._keep_here({number: f"{type(error).__name__}: {error}"})
            return None
        self._pickled[number] = pickled
        return number

    async def score(self, number: int, record: RagRecord) -> Outcome:
        """What the helper finds.

        Raises:
            HelperUnavailable: the application has to do it.
            JudgeError: the helper died over it, or could not do it.
        """
        if number not in self._pickled:
            raise HelperUnavailable
        session = session_of(record)
        asked = _Asked(meter=session.meter, allowance=session.allowance)
        requests = session.keep(self, list[_Request])
        if not requests or requests[-1].is_sent:
            requests.append(_Request(client=self.client, record=record, session=session))
            requests[-1].task = asyncio.get_running_loop().create_task(requests[-1].send())
        request = requests[-1]
        request.asked[number] = asked
        try:
            return await asked.outcome
        except _UnfitError as error:
            self._keep_here({number: str(error)})
            raise HelperUnavailable from None
        finally:
            if not asked.outcome.done() or asked.outcome.cancelled():
                request.cancel(number)

    def _init_message(self) -> tuple[str, bytes, dict[int, bytes]]:
        """The metrics all together, so that they share a judge there as they do here, and each by itself."""
        together = pickle.dumps({number: self._metrics[number] for number in self._pickled})
        return "metrics", together, self._pickled

    def _keep_here(self, unfit: dict[int, str]) -> None:
        """These metrics are for the application."""
        for number, reason in unfit.items():
            self._pickled.pop(number, None)
            metric = self._metrics[number]
            if any(are_cpu_bound(metric)):
                self._log.trouble(
                    f"unfit {metric.name}",
                    "metric %s is scored in a thread of the application, not in the helper: %s",
                    metric.name,
                    reason,
                )


class _UnfitError(Exception):
    """The helper's outcome cannot travel; the message says why."""


@dataclass(kw_only=True, slots=True)
class _Asked:
    """A metric that is being scored, and who pays for it."""

    meter: UsageMeter | None
    allowance: Allowance | None
    outcome: asyncio.Future[Outcome] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(kw_only=True, slots=True, eq=False)
class _Request:
    """One record at the helper, with all the metrics that were asked for before it was sent."""

    client: HelperClient
    record: RagRecord
    session: JudgingSession
    asked: dict[int, _Asked] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None
    is_sent: bool = False
    id: int = field(default_factory=itertools.count(1).__next__)
    helper: Helper | None = None
    reservations: dict[int, Reservation] = field(default_factory=dict)
    reserving: set[asyncio.Task[None]] = field(default_factory=set)

    def cancel(self, number: int) -> None:
        """Nobody waits for this metric any more."""
        del self.asked[number]
        if self.helper is not None:
            self.helper.send("cancel", self.id, number)
        if not self.asked and self.task is not None:
            self.task.cancel()

    async def send(self) -> None:
        error: Exception | None = None
        try:
            self._take(*await self.client.ask("score", self._payload, self._heard))
        except HelperUnavailable as unavailable:
            error = unavailable
        except HelperLost:
            error = JudgeError("helper_died", "the helper process died while it scored this record")
        except HelperRefusal as refusal:
            error = JudgeError("helper_error", str(refusal))
        finally:
            self.is_sent = True
            for asked in self.asked.values():
                if not asked.outcome.done():
                    asked.outcome.set_exception(error or JudgeError("helper_error", "the helper gave no outcome"))

    def _payload(self, helper: Helper) -> tuple[Any, ...]:
        """The record, and by number the metrics that have no outcome yet: whether there is a limit to what they may spend."""
        self.is_sent = True
        self.helper = helper
        self.reservations = {}  # those of a helper that died count as spent
        wanted = {number: one.allowance is not None for number, one in self.asked.items() if not one.outcome.done()}
        return self.id, serialization.packed(self.record), wanted

    def _heard(self, kind: str, *content: Any) -> None:
        if kind == "ended":
            self._take(*content)
        elif kind == "settle":
            reservation = self.reservations.pop(content[0], None)
            if reservation is not None:
                reservation.settle(content[1])
        elif (asked := self.asked.get(content[0])) is not None:
            self._spend(kind, asked, *content[1:])

    def _take(self, about: tuple[bool, str | None] | None, packed: bytes, unfit: dict[int, str]) -> None:
        if about is not None:
            self.session.keep("about", lambda: about)
        for number, outcome in serialization.loads(packed):
            if number in self.asked:
                self.asked[number].outcome.set_result(outcome)
        for number, reason in unfit.items():
            if number in self.asked:
                self.asked[number].outcome.set_exception(_UnfitError(reason))

    def _spend(self, kind: str, asked: _Asked, usage: Usage, key: int = 0) -> None:
        if kind == "usage" and asked.meter is not None:
            asked.meter.add(usage)
        elif kind == "reserve" and asked.allowance is not None:
            task = asyncio.get_running_loop().create_task(self._reserve(asked.allowance, usage, key))
            self.reserving.add(task)
            task.add_done_callback(self.reserving.discard)

    async def _reserve(self, allowance: Allowance, expected: Usage, key: int) -> None:
        denial = None
        try:
            reserved = allowance.reserve(expected)
            self.reservations[key] = await reserved if inspect.isawaitable(reserved) else reserved
        except JudgeError as error:
            denial = error
        if self.helper is not None:
            self.helper.send("reserved", self.id, key, denial)
