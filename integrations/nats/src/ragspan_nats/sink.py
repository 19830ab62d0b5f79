"""The sink: takes captures on the request path, and publishes them off it.

Guarantees:
- `submit` returns in microseconds, waits for nothing that does I/O, never raises, and may be called from any thread, from
  a finaliser and from a signal handler, also while it is being called.
- Every submitted capture ends in exactly one counted way: published, nothing to publish, or dropped with a reason. At every
  moment `submitted = queued + in flight + finished + dropped`. Published means that the stream has acknowledged it.
- What waits is bounded by number and by bytes, what is in flight by number. Nothing grows with the requests served.
- A broker that is away, slow or full costs records once the retry timeout is over, or the queue is full, and nothing else.
  While it is away nothing is computed: a capture is made a record once the broker is there.
- A record is in the stream once, however often it is submitted or published, within the stream's window for duplicates.
- `flush` and `shutdown` return when their timeout is over (and a grace of a tenth of a second), whatever hangs.
- The child of a fork has a fresh, empty sink, with a connection of its own. At the end of the process what waits is
  published within `exit_timeout`.

Until the first submit there is no thread and no connection. From then on the sink lives until `shutdown`, or as long as the
process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragspan.arguments import SECONDS, TEXT, WHOLE, choice, instance, whole
from ragspan.config import DropPolicy, Settings, is_enabled
from ragspan.engine._background import BackgroundProcessor, ProcessorOptions
from ragspan.engine._record_queue import CompletionListener, Item, RecordQueue
from ragspan.engine._redaction import Redaction
from ragspan.engine._threads import Deadline, call_guarded
from ragspan.exceptions import ConfigurationError, RecordError
from ragspan.redaction import Redact, RedactOption, redact_from
from ragspan.telemetry import semconv
from ragspan.telemetry.content import ContentPolicy
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.settings import BrokerAccess, StreamLimits, StreamNames, stream_limits, stream_name

if TYPE_CHECKING:  # what these load is needed where a sink is made, not where it is imported
    from opentelemetry.metrics import MeterProvider

    from ragspan.records import RagRecord
    from ragspan_nats.message import Message
    from ragspan_nats.publishing import StreamPublisher

_IN_FLIGHT = 64
"""Records that are published and not acknowledged. A broker that takes five milliseconds gets 12,000 a second so."""
_REDACTION_TIMEOUT = 60.0  # seconds for one record
_BREATH = 50e-6  # seconds; less, and a request's thread may not be awake before we go on
_CLOSE = 1e-3  # seconds from one record to the next within which they count as one stretch of work


@dataclass(frozen=True, kw_only=True, slots=True)
class SinkStats:
    """Where every submitted capture is, at one moment.

    `submitted == queued + in_flight + finished + sum(dropped.values())` holds in each of them.
    """

    submitted: int = 0
    queued: int = 0
    in_flight: int = 0
    """Taken up, and not acknowledged by the stream; while the broker is away these wait as well."""
    finished: int = 0
    """`published + nothing_to_publish`."""
    published: int = 0
    """Records that the stream has; also those that it had already."""
    nothing_to_publish: int = 0
    """Captures that turned out to be no answered request."""
    dropped: Mapping[str, int]
    """By `ragspan.engine.DropReason`; reasons that did not occur are left out."""
    errors: Mapping[str, int]
    """What went wrong without losing a record, by place: `publish` (no acknowledgement came, or a refusal; it is tried
    again), `worker`; and what others report to `count_error`, such as `callback`."""


class NatsSink(BackgroundProcessor):
    """Publishes captured answers to a JetStream stream, from which `ragspan worker` processes score them.

    Args:
        url: the broker, such as `nats://broker:4222`; how to sign in to it, `RAGSPAN_NATS_*` say.
        stream: the stream's name; records go to the subject `<stream>.records`.
        access: the broker and how to sign in to it, in place of `url` and the environment.
        limits: of the streams, where they are missing and made by us; those of `RAGSPAN_NATS_MAX_RECORDS`, `_MAX_BYTES` and
            `_REPLICAS` if None.
        queue_size: captures that may wait, at least 1.
        queue_bytes: bytes of text that may wait, at least 1, as the captures' size hints add up.
        drop: what goes when the queue is full: the `"oldest"` captures in it, or the `"newest"`, which is not let in.
        compress_above: bytes of JSON from which on a record is compressed, 0 or more.
        retry_timeout: seconds for which a record is tried that the broker does not take, 0 or more. More than the stream's
            window for duplicates, and a record whose acknowledgement was lost may be there twice.
        exit_timeout: seconds that the end of the process may wait for records to be published, 0 or more.
        redact: runs over every text of a record before it is published, as for `ScoringEngine`.
        name: tells sinks of one process apart, in thread names, in the metrics about ragspan itself, and for the broker.
        meter_provider: where those metrics go; the global one if None.

    Raises:
        ConfigurationError: an argument, or `RAGSPAN_ENABLED`, is wrong; the message names it, and holds no secret.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        stream: str = "ragspan",
        access: BrokerAccess | None = None,
        limits: StreamLimits | None = None,
        queue_size: int = 2048,
        queue_bytes: int = 64 * 1024 * 1024,
        drop: DropPolicy = "oldest",
        compress_above: int = 8192,
        retry_timeout: float = 600.0,
        exit_timeout: float = 10.0,
        redact: RedactOption = None,
        name: str = "ragspan",
        meter_provider: MeterProvider | None = None,
    ) -> None:
        enabled = is_enabled()
        self._access = _access_to(url, access, reads_environment=enabled)
        self._names = StreamNames(stream=stream)
        if limits is None:
            limits = stream_limits() if enabled else StreamLimits()
        instance(StreamLimits, "StreamLimits").check("limits", limits)
        WHOLE.check("queue_size", queue_size)
        WHOLE.check("queue_bytes", queue_bytes)
        whole(0).check("compress_above", compress_above)
        choice("oldest", "newest").check("drop", drop)
        SECONDS.check("retry_timeout", retry_timeout)
        SECONDS.check("exit_timeout", exit_timeout)
        TEXT.check("name", name)
        self._limits = limits
        self._compress_above = compress_above
        self._retry_timeout = retry_timeout
        self._redact = redact_from(redact) if enabled else None
        super().__init__(
            ProcessorOptions(
                queue_size=queue_size,
                queue_bytes=queue_bytes,
                drop=drop,
                concurrency=_IN_FLIGHT,
                exit_timeout=exit_timeout,
                name=name,
                thread_name=f"{name}-publisher",
                finished_as=semconv.RESULT_PUBLISHED,
            ),
            is_enabled=enabled,
            meter_provider=meter_provider,
        )
        if enabled:
            import ragspan_nats.publishing  # noqa: F401 - here, where nobody waits, rather than beside the first requests

    def stats(self) -> SinkStats:
        """Where everything is that was submitted. Takes no lock."""
        counts = self._counts()
        return SinkStats(
            submitted=counts.submitted,
            queued=counts.queued,
            in_flight=counts.in_flight,
            finished=counts.finished,
            published=counts.scored,  # for the queue, that is what it is
            nothing_to_publish=counts.nothing_to_score,
            dropped=counts.dropped,
            errors=counts.errors,
        )

    def _make_work(self, queue: RecordQueue, log: ThrottledLog) -> _Publishing:
        def connect() -> StreamPublisher:
            from ragspan_nats.publishing import StreamPublisher

            return StreamPublisher(
                self._access,
                self._names,
                self._limits,
                name=self._processor_options.name,
                retried=lambda: queue.record_error("publish"),
                log=log,
            )

        return _Publishing(
            connect,
            queue,
            log,
            redact=self._redact,
            compress_above=self._compress_above,
            retry_timeout=self._retry_timeout,
        )


class _Publishing:
    """What a sink does with each capture: it is made a record, redacted, written as a message, and published.

    Between two records the interpreter is let go of for a moment, so that a request waits for the work on one at most. (The
    interpreter's own switch comes every five milliseconds, far too late for a request that takes thirty.)
    """

    def __init__(
        self,
        connect: Callable[[], StreamPublisher],
        account: CompletionListener,
        log: ThrottledLog,
        *,
        redact: Redact | None,
        compress_above: int,
        retry_timeout: float,
    ) -> None:
        self._connect = connect
        self._account = account
        self._log = log
        self._compress_above = compress_above
        self._retry_timeout = retry_timeout
        self._redaction = Redaction(redact, timeout=_REDACTION_TIMEOUT, account=account, log=log)
        self._publisher: StreamPublisher | None = None
        self._worked_until = 0.0
        self._shows_texts = ContentPolicy().allows("spans")

    async def score(self, item: Item) -> None:
        """Bring one item to its end."""
        publisher = self._publisher = self._publisher or self._connect()
        limit = Deadline(self._retry_timeout)
        if await publisher.ready(limit) is None:
            self._account.end_dropped(item, publisher.obstacle)
            return
        if time.monotonic() - self._worked_until < _CLOSE:
            time.sleep(_BREATH)  # noqa: ASYNC251 - in this event loop there is nothing that could run meanwhile
        record = await self._redaction.record_of(item)
        message = None if record is None else self._message_of(item, record)
        self._worked_until = time.monotonic()
        if message is None:
            return
        reason = await publisher.publish(message, limit)
        if reason is None:
            self._account.end_scored(item)
        else:
            self._account.end_dropped(item, reason)

    def stop(self, deadline: Deadline) -> None:  # noqa: ARG002 - nothing here takes time
        self._redaction.close()

    def flush(self, deadline: Deadline) -> bool:  # noqa: ARG002 - likewise
        """True: what is out is with the stream."""
        return True

    def shutdown(self, deadline: Deadline) -> None:
        """The connection ends with the event loop."""

    def close(self) -> None:
        """The publisher closes the connection when its task is cancelled."""

    def join(self) -> None:
        """A worker that died has a successor, with a loop, and a publisher, of its own."""
        self._publisher = None

    def _message_of(self, item: Item, record: RagRecord) -> Message | None:
        """The record as a message; None if the item has ended without one."""
        message, error = call_guarded(self._written, record)
        if isinstance(error, RecordError):
            self._account.end_dropped(item, "too_large")
        elif error is not None:
            self._account.end_dropped(item, "capture_error")
            self._log.trouble("capture_error", "a record could not be written: %s", type(error).__name__)
        return message if self._account.has_in_work(item) else None

    def _written(self, record: RagRecord) -> Message:
        """The message; prompts and the like, which only spans show, go along where the application's spans may have them."""
        from ragspan_nats.message import message_of

        record = record if self._shows_texts else record.without_step_texts()
        return message_of(record, compress_above=self._compress_above)


def sink_from_settings(settings: Settings) -> NatsSink:
    """A sink for the broker that the settings name, with the stream, its limits and the credentials of `RAGSPAN_NATS_*`.

    Raises:
        ConfigurationError: the address, a credential, the stream's name or a limit is wrong; the message holds no secret.
    """
    if settings.sink is None:
        raise ConfigurationError("RAGSPAN_SINK should be an address, such as 'nats://broker:4222'")
    return NatsSink(
        access=BrokerAccess.from_environment(settings.sink),
        stream=stream_name(),
        queue_size=settings.queue_size,
        queue_bytes=settings.queue_bytes,
        drop=settings.drop,
        exit_timeout=settings.exit_timeout,
        redact=settings.redact,
    )


def _access_to(url: str | None, access: BrokerAccess | None, *, reads_environment: bool) -> BrokerAccess:
    if access is None:
        if url is None:
            raise ConfigurationError("no broker is named: give an address, such as nats://broker:4222, or access")
        return BrokerAccess.from_environment(url) if reads_environment else BrokerAccess(url=url)
    instance(BrokerAccess, "a BrokerAccess").check("access", access)
    if url is not None and url != access.url:
        raise ConfigurationError("url and access name two brokers: give one of them")
    return access
