"""Sends whole records to a helper, which scores them and exports their spans.

Stands where `Scoring` and `Emission` stand in an engine that does both itself.

Guarantees:
- Every record is counted here once, whatever happens to the helper. One about which a helper died is sent to the next one
  once; what the first had emitted is then emitted twice. After the second death the record is dropped.
- Where there is no helper the application scores and exports by itself.
- `flush` and `close` may come from any thread and return when their time is up.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import pickle
from typing import Any

from ragspan.engine._account import Account
from ragspan.engine._deadline import Deadline
from ragspan.engine._emission import Emission
from ragspan.engine._options import Options
from ragspan.engine._queue import Item
from ragspan.engine._scoring import Scoring, record_of
from ragspan.engine.helper import wire
from ragspan.engine.helper.client import HelperClient, HelperLost, HelperRefusal, HelperUnavailable, log_note
from ragspan.throttled_log import ThrottledLog

_ATTEMPTS = 2
_MARGIN = 30.0  # seconds beyond the metrics' own limit, for the way and for what the helper has in work besides
_GRACE = 0.05  # seconds for an answer that is on its way when the time is up


class Forwarding:
    """Where an engine with `export="helper"` has its records scored.

    Args:
        scoring: does it here where there is no helper, and `emission` exports it then.
    """

    def __init__(
        self, options: Options, *, account: Account, scoring: Scoring, emission: Emission, log: ThrottledLog
    ) -> None:
        self._account = account
        self._log = log
        self._here = scoring
        self._emission = emission
        self._timeout = options.metric_timeout + _MARGIN
        self._client = HelperClient(
            lambda: ("score", pickle.dumps(options, 5), _resource_attributes()), log=log, on_note=self._noted
        )
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def helper_pid(self) -> int | None:
        return self._client.pid

    def prepare_for_exit(self) -> None:
        self._here.prepare_for_exit()

    async def score(self, item: Item) -> None:
        """Bring one item to its end."""
        self._loop = asyncio.get_running_loop()
        record = record_of(item, self._account, self._log)
        if record is None:
            return
        if self._client.is_given_up:
            await self._here.score_record(item, record)
            return
        data = wire.packed(record)
        for _ in range(_ATTEMPTS):
            try:
                helper = await self._client.helper()
                reason = await asyncio.wait_for(helper.ask("score", data), self._timeout)
            except HelperLost:
                continue
            except HelperUnavailable:
                await self._here.score_record(item, record)
            except (HelperRefusal, asyncio.TimeoutError):
                self._account.end_dropped(item, "worker_error")
            else:
                self._end(item, reason)
            return
        self._account.end_dropped(item, "worker_error")

    def close(self, deadline: Deadline) -> None:
        self._ask("shutdown", deadline)
        self._here.close(deadline)

    def hang_up(self) -> None:
        self._client.hang_up()
        self._here.hang_up()

    def let_go(self) -> None:
        self._client.let_go()
        self._here.let_go()

    def leave_to_parent(self) -> None:
        self._client.leave_to_parent()
        self._here.leave_to_parent()

    def flush(self, deadline: Deadline) -> bool:
        """Let the helper flush, and what was exported here; True if all of it was sent in time."""
        has_sent = self._ask("flush", deadline)
        return self._emission.flush(deadline) and has_sent

    def shutdown(self, deadline: Deadline) -> None:
        self._emission.shutdown(deadline)

    def _end(self, item: Item, reason: Any) -> None:
        if reason is None:
            self._account.end_scored(item)
        else:
            self._account.end_dropped(item, reason)

    def _ask(self, kind: str, deadline: Deadline) -> bool:
        """True if the helper did it, or if there is none that could have anything to do."""
        loop = self._loop
        if loop is None or self._client.pid is None:
            return True
        asking = self._client_asks(kind, deadline)
        try:
            answer = asyncio.run_coroutine_threadsafe(asking, loop)
        except RuntimeError:  # the loop is closed: its helper has ended with it
            asking.close()
            return False
        try:
            return answer.result(deadline.remaining + _GRACE) is not False
        except (concurrent.futures.TimeoutError, concurrent.futures.CancelledError):
            answer.cancel()
        except (HelperLost, HelperUnavailable, HelperRefusal):
            self._log.trouble("helper_flush", "the helper process could not export what it held")
        return False

    async def _client_asks(self, kind: str, deadline: Deadline) -> object:
        helper = await self._client.helper()
        return await helper.ask(kind, deadline.remaining)

    def _noted(self, note: tuple[Any, ...]) -> None:
        kind, _, *content = note
        if kind == "wrong":
            self._account.went_wrong(*content)
        else:
            log_note(note)


def _resource_attributes() -> dict[str, Any]:
    """What the application says of itself on its own spans."""
    from opentelemetry import trace

    resource = getattr(trace.get_tracer_provider(), "resource", None)
    attributes = dict(getattr(resource, "attributes", None) or {})
    return {key: value for key, value in attributes.items() if not key.startswith(("telemetry.", "process."))}
