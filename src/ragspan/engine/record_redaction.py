"""Makes captures records, and redacts them and what metrics say of them."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import TypeVar

from ragspan.engine.record_queue import Item
from ragspan.engine.stats import Dropped, DropReason
from ragspan.engine.threads import DaemonThreads, call_guarded
from ragspan.outcomes import Outcome
from ragspan.records import RagRecord
from ragspan.redaction import Redact, RedactedRecord, RedactionError, redacted, withheld
from ragspan.telemetry.otel_context import suppressed
from ragspan.throttled_log import ThrottledLog

_T = TypeVar("_T", RagRecord, Outcome)


class Redaction:
    """The redaction of one engine or sink, in one daemon thread, one text after the other: it need not be safe for threads.

    Without `redact` nothing changes and nothing is waited for; `timeout` is the seconds that one record, or one outcome, may take.
    """

    def __init__(self, redact: Redact | None, *, timeout: float, log: ThrottledLog) -> None:
        self._redact = redact
        self._timeout = timeout
        self._log = log
        self._thread = DaemonThreads(1, name="ragspan-redact")  # is started by the first text

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)

    async def redacted_record(self, item: Item) -> RagRecord | Dropped | None:
        """The record that the item's capture becomes, redacted, or why it becomes none; None if the item is out already."""
        record, error = call_guarded(item.capture.to_record)
        if error is None and record is None:
            return Dropped(reason="nothing_to_score")
        if not isinstance(record, RagRecord):
            kind = type(record if error is None else error).__name__
            return self._dropped("capture_error", "a capture could not be made a record: %s", kind)
        if self._redact is not None and not isinstance(item.capture, RedactedRecord):
            record, why = await self._run(redacted, record, self._redact)
            if record is None:
                return self._dropped("redaction_failed", "a record is dropped, because redact failed: %s", why)
        return None if item.is_out else record

    async def outcome(self, outcome: Outcome) -> Outcome:
        """The outcome with its explanations redacted, or without them."""
        if self._redact is None:
            return outcome
        made, _ = await self._run(redacted, outcome, self._redact)
        return withheld(outcome) if made is None else made

    async def _run(self, call: Callable[[_T, Redact], _T], value: _T, redact: Redact) -> tuple[_T | None, str]:
        """What the call makes of the value in the thread; or None, and why."""
        with suppressed():
            context = contextvars.copy_context()
        try:
            calling = self._thread.submit(context.run, call_guarded, call, value, redact)
            made, error = await asyncio.wait_for(asyncio.wrap_future(calling), self._timeout)
        except asyncio.TimeoutError:
            return None, f"it took longer than {self._timeout:g} s"
        except RuntimeError:
            return None, "no thread can be started"
        return made, str(error) if isinstance(error, RedactionError) else type(error).__name__

    def _dropped(self, reason: DropReason, message: str, why: str) -> Dropped:
        self._log.report(reason, message, why)
        return Dropped(reason=reason)
