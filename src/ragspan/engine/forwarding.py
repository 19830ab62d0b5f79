"""Has the helper score whole records and export their spans, for an engine with `export="helper"`.

It is the engine's `Work`, as `RecordScorer` is where the application exports.

Guarantees:
- Every record is counted here once, whatever happens to the helper. The records of a helper that died are sent again once;
  what it had exported is then exported twice. If the next helper dies as well, the record is dropped.
- While there is no helper, records wait for the next one, and are dropped when their time is up: what counts as scored has
  been handed to the exporter of a helper.
- `flush` and `stop` may come from any thread and return when their time is up. `flush` returns False if a
  helper has died since the last one, because it may have held spans; `stats().errors` counts these helpers.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import pickle
from dataclasses import replace
from typing import Any

from ragspan.engine.helper import serialization
from ragspan.engine.helper.client import HelperClient, HelperUnavailable
from ragspan.engine.helper.connection import HelperLost, HelperRefusal
from ragspan.engine.options import Options
from ragspan.engine.record_queue import Item
from ragspan.engine.record_redaction import Redaction
from ragspan.engine.stats import Dropped
from ragspan.engine.threads import Deadline
from ragspan.outcomes import ScoredRecord
from ragspan.records import RagRecord
from ragspan.throttled_log import ThrottledLog

_MARGIN = 30.0  # seconds beyond the metrics' own limit, for the way and for the helper's other records
_GRACE = 0.05  # seconds for an answer that is on its way when the time is up


class Forwarding:
    """Where an engine with `export="helper"` has its records scored."""

    def __init__(self, options: Options, *, log: ThrottledLog) -> None:
        self._log = log
        self._redaction = Redaction(options.redact, timeout=options.metric_timeout, log=log)
        self._timeout = options.metric_timeout + _MARGIN
        self.client = HelperClient(
            lambda: ("RecordService", options.pickled_for_helper(), _resource_attributes()),
            max_questions=max(2, options.concurrency),
            log=log,
            on_error=log.count,
            is_only_place=True,
        )
        self._seen_deaths = 0

    async def process(self, item: Item) -> ScoredRecord | Dropped | None:
        """What becomes of one item; a `ScoredRecord` only if it is awaited."""
        record = await self._redaction.redacted_record(item)
        if not isinstance(record, RagRecord):
            return record
        is_awaited = item.on_end is not None
        try:
            asking = self.client.ask("score", serialization.dumps(record), item.sample, is_awaited)
            answer: bytes | Dropped | None = await asyncio.wait_for(asking, self._timeout)
        except (HelperLost, HelperRefusal, HelperUnavailable, asyncio.TimeoutError):
            return Dropped(reason="worker_error")
        return replace(pickle.loads(answer), record=record) if isinstance(answer, bytes) else answer  # noqa: S301 - our helper's

    def flush(self, deadline: Deadline) -> bool:
        """Let the helper flush; True if all of it was sent in time."""
        has_sent = self._helper_did("flush", deadline)
        seen_deaths, self._seen_deaths = self._seen_deaths, self.client.deaths
        return has_sent and seen_deaths == self._seen_deaths

    def stop(self, deadline: Deadline) -> None:
        self._redaction.close()
        self._helper_did("stop", deadline)

    def worker_ended(self) -> None:
        self.client.close()

    def _helper_did(self, kind: str, deadline: Deadline) -> bool:
        """Whether the helper, if there is one, did this in time."""
        answer = self.client.ask_from_outside(kind, deadline.remaining)
        if answer is None:
            return True
        try:
            return answer.result(deadline.remaining + _GRACE) is not False
        except (concurrent.futures.TimeoutError, concurrent.futures.CancelledError):
            answer.cancel()
        except (HelperLost, HelperUnavailable, HelperRefusal):
            self._log.report("helper_flush", "the helper process could not export what it held")
        return False


def _resource_attributes() -> dict[str, Any]:
    """What the application says of itself on its own spans."""
    from opentelemetry import trace

    resource = getattr(trace.get_tracer_provider(), "resource", None)
    attributes = dict(getattr(resource, "attributes", None) or {})
    return {key: value for key, value in attributes.items() if not key.startswith(("telemetry.", "process."))}
