"""What happens to one capture: made a record, written as a message, published, counted.

Guarantees:
- A capture is made a record, and written, once the broker is there: while it is away nothing is computed.
- Between two records the interpreter is let go of for a moment, so that a request waits for the work on one at most. (The
  interpreter's own switch comes every five milliseconds, far too late for a request that takes thirty.)

All of it runs in the worker's event loop.
"""

from __future__ import annotations

import asyncio
import time

from ragspan.engine._boundary import attempt
from ragspan.engine._deadline import Deadline
from ragspan.engine._record_queue import CompletionListener, Item
from ragspan.engine._redaction import Redaction
from ragspan.exceptions import RecordError
from ragspan.records import RagRecord
from ragspan.telemetry.content import ContentPolicy
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.message import Message, message_of
from ragspan_nats.sink._link import Link
from ragspan_nats.sink._publisher import Publisher
from ragspan_nats.sink.options import SinkOptions

_REDACTION_TIMEOUT = 60.0  # seconds for one record
_BREATH = 50e-6  # seconds; less, and a request's thread may not be awake before we go on
_CLOSE = 1e-3  # seconds from one record to the next within which they count as one stretch of work


class Publishing:
    """Publishes the captures of a sink; its `Work`."""

    def __init__(self, options: SinkOptions, *, account: CompletionListener, log: ThrottledLog) -> None:
        self._options = options
        self._account = account
        self._log = log
        self._redaction = Redaction(options.redact, timeout=_REDACTION_TIMEOUT, account=account, log=log)
        self._publisher: Publisher | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worked_until = 0.0
        self._shows_texts = ContentPolicy().allows("spans")

    def prepare_for_exit(self) -> None:
        self._redaction.prepare_for_exit()

    async def score(self, item: Item) -> None:
        """Bring one item to its end."""
        publisher = self._publisher_here()
        patience = Deadline(self._options.patience)
        if await publisher.ready(patience) is None:
            self._account.end_dropped(item, publisher.obstacle)
            return
        self._breathe()
        record = await self._redaction.record_of(item)
        message = None if record is None else self._message_of(item, record)
        self._worked_until = time.monotonic()
        if message is None:
            return
        reason = await publisher.publish(message, patience)
        if reason is None:
            self._account.end_scored(item)
        else:
            self._account.end_dropped(item, reason)

    def close(self, deadline: Deadline) -> None:  # noqa: ARG002 - nothing here takes time
        self._redaction.close()

    def flush(self, deadline: Deadline) -> bool:  # noqa: ARG002 - likewise
        """True: what is published is with the stream."""
        return True

    def shutdown(self, deadline: Deadline) -> None:
        """The connection ends with the event loop."""

    def hang_up(self) -> None:
        """The link closes the connection when its task is cancelled."""

    def let_go(self) -> None:
        self._publisher = self._loop = None

    def _publisher_here(self) -> Publisher:
        """That of this event loop: a worker that died has a successor, with a loop of its own."""
        loop = asyncio.get_running_loop()
        if self._publisher is None or self._loop is not loop:
            link = Link(self._options, log=self._log)
            subject = self._options.names.records
            self._publisher = Publisher(link, subject=subject, account=self._account, log=self._log)
            self._loop = loop
        return self._publisher

    def _breathe(self) -> None:
        """Wait, with nothing of the interpreter held. In this event loop there is nothing that could run meanwhile."""
        if time.monotonic() - self._worked_until < _CLOSE:
            time.sleep(_BREATH)

    def _message_of(self, item: Item, record: RagRecord) -> Message | None:
        """The record as a message; None if the item has ended without one."""
        message, error = attempt(self._written, record)
        if isinstance(error, RecordError):
            self._account.end_dropped(item, "too_large")
        elif error is not None:
            self._account.end_dropped(item, "capture_error")
            self._log.trouble("capture_error", "a record could not be written: %s", type(error).__name__)
        return message if self._account.has_in_work(item) else None

    def _written(self, record: RagRecord) -> Message:
        """The message; prompts and the like, which only spans show, go along where the application's spans may have them."""
        record = record if self._shows_texts else record.without_step_texts()
        return message_of(record, compress_above=self._options.compress_above)
