"""Sends whole records to a helper, which scores them and exports their spans.

Stands where `RecordScorer` and `EmitterGroup` stand in an engine that does both itself.

Guarantees:
- Every record is counted here once, whatever happens to the helper. One about which a helper died is sent to the next one
  once; what the first had emitted is then emitted twice. If that dies as well the record is dropped.
- While there is no helper the application scores and exports by itself. If it has no TracerProvider, by which it could,
  records wait for the next helper, and are dropped when their time is up: what is counted as scored was exported somewhere.
- `flush` and `close` may come from any thread and return when their time is up. `flush` says False if a helper has died
  since the last one, for it may have held spans; `stats().errors` counts those helpers.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ragspan.engine._options import Options
from ragspan.engine._record_queue import CompletionListener, Item
from ragspan.engine._scoring import RecordScorer
from ragspan.engine._threads import Deadline
from ragspan.engine.helper import serialization
from ragspan.engine.helper.client import HelperClient, HelperUnavailable
from ragspan.engine.helper.connection import HelperLost, HelperRefusal
from ragspan.engine.stats import Dropped
from ragspan.outcomes import ScoredRecord
from ragspan.records import RagRecord
from ragspan.throttled_log import ThrottledLog

if TYPE_CHECKING:
    from ragspan.telemetry.base import Emitter

_Answer: TypeAlias = "concurrent.futures.Future[object]"

_MARGIN = 30.0  # seconds beyond the metrics' own limit, for the way and for what the helper has in work besides
_GRACE = 0.05  # seconds for an answer that is on its way when the time is up


class Forwarding:
    """Where an engine with `export="helper"` has its records scored.

    Args:
        here: scores and exports where there is no helper.
    """

    def __init__(self, options: Options, here: RecordScorer, *, account: CompletionListener, log: ThrottledLog) -> None:
        self._account = account
        self._log = log
        self._here = here
        self._timeout = options.metric_timeout + _MARGIN
        self._client = HelperClient(
            lambda: ("records", options.to_travel(), _resource_attributes()),
            max_questions=max(2, options.concurrency),
            log=log,
            on_error=account.record_error,
            can_do_without=functools.partial(_can_export, options.emitters),
        )
        self._told_deaths = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread_id = 0

    @property
    def helper_pid(self) -> int | None:
        return self._client.pid

    async def score(self, item: Item) -> None:
        """Bring one item to its end."""
        self._loop, self._thread_id = asyncio.get_running_loop(), threading.get_ident()
        record = await self._here.redaction.record_of(item)
        if record is None:
            return
        try:
            asking = self._client.ask(
                "score", lambda _: (serialization.packed(record), item.sample, item.on_end is not None)
            )
            answer = await asyncio.wait_for(asking, self._timeout)
        except HelperUnavailable:
            await self._here.score(item, record)
        except (HelperLost, HelperRefusal, asyncio.TimeoutError):
            self._account.end(item, Dropped(reason="worker_error"))
        else:
            self._account.end(item, _result(record, *answer))

    def stop(self, deadline: Deadline) -> None:
        asked = self._tell("shutdown", deadline)
        self._did(asked, Deadline(deadline.remaining + _GRACE))
        self._here.stop(deadline)

    def worker_ended(self) -> None:
        self._client.close()
        self._here.worker_ended()

    def flush(self, deadline: Deadline) -> bool:
        """Let the helper flush, and what was exported here; True if all of it was sent in time."""
        deaths, told_deaths = self._client.deaths, self._told_deaths
        asked = self._tell("flush", deadline)
        patience = Deadline(deadline.remaining + _GRACE)
        has_sent = self._here.flush(deadline)
        has_sent = self._did(asked, patience) and has_sent
        self._told_deaths = deaths  # only now: those who ask at the same time have to be told, too
        return has_sent and deaths == told_deaths

    def _tell(self, kind: str, deadline: Deadline) -> _Answer | None:
        """Ask the helper to do something before the deadline; None if there is none to ask."""
        loop = self._loop
        if loop is None or self._client.pid is None or threading.get_ident() == self._thread_id:
            return None  # in the loop's own thread, waiting would be waiting for oneself
        asking = self._client_asks(kind, deadline)
        try:
            return asyncio.run_coroutine_threadsafe(asking, loop)
        except RuntimeError:  # the loop is closed: its helper has ended with it
            asking.close()
            refused: _Answer = concurrent.futures.Future()
            refused.set_result(False)
            return refused

    async def _client_asks(self, kind: str, deadline: Deadline) -> object:
        return await self._client.ask_now(kind, deadline.remaining)

    def _did(self, asked: _Answer | None, patience: Deadline) -> bool:
        if asked is None:
            return True
        try:
            return asked.result(patience.remaining) is not False
        except (concurrent.futures.TimeoutError, concurrent.futures.CancelledError):
            asked.cancel()
        except (HelperLost, HelperUnavailable, HelperRefusal):
            self._log.trouble("helper_flush", "the helper process could not export what it held")
        return False


def _result(record: RagRecord, dropped: Dropped | None, scored: bytes | None) -> ScoredRecord | Dropped | None:
    return dropped if scored is None else ScoredRecord(record=record, **serialization.loads(scored))


def _can_export(emitters: Sequence[Emitter]) -> bool:
    """Whether this process could export what it scores: the API's own TracerProvider, which stands in for none, drops it."""
    from opentelemetry import trace

    from ragspan.telemetry.otel_emitter import OTelEmitter

    has_provider = type(trace.get_tracer_provider()).__module__ != trace.__name__
    return has_provider or not any(isinstance(emitter, OTelEmitter) for emitter in emitters)


def _resource_attributes() -> dict[str, Any]:
    """What the application says of itself on its own spans."""
    from opentelemetry import trace

    resource = getattr(trace.get_tracer_provider(), "resource", None)
    attributes = dict(getattr(resource, "attributes", None) or {})
    return {key: value for key, value in attributes.items() if not key.startswith(("telemetry.", "process."))}
