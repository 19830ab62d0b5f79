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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragspan.arguments import SECONDS, instance, whole
from ragspan.config import DropPolicy, Settings, is_enabled
from ragspan.engine._background import BackgroundProcessor, ProcessorOptions
from ragspan.engine._record_queue import RecordQueue
from ragspan.exceptions import ConfigurationError
from ragspan.redaction import RedactOption, redact_from
from ragspan.telemetry import semconv
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.publishing import Publishing
from ragspan_nats.settings import BrokerAccess, Stream

if TYPE_CHECKING:  # what these load is needed where a sink is made, not where it is imported
    from opentelemetry.metrics import MeterProvider


_IN_FLIGHT = 64
"""Records that are published and not acknowledged. A broker that takes five milliseconds gets 12,000 a second so."""


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
        stream: the stream, or its name: then it has the limits of `RAGSPAN_NATS_MAX_RECORDS`, `_MAX_BYTES` and `_REPLICAS`
            where it is missing and made by us. Records go to the subject `<name>.records`.
        access: the broker and how to sign in to it, in place of `url` and the environment.
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

    _finished_as = semconv.RESULT_PUBLISHED

    def __init__(
        self,
        url: str | None = None,
        *,
        stream: str | Stream = "ragspan",
        access: BrokerAccess | None = None,
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
        if isinstance(stream, str):
            stream = Stream.from_environment(stream) if enabled else Stream(name=stream)
        instance(Stream, "a name or a Stream").check("stream", stream)
        self._stream = stream
        whole(0).check("compress_above", compress_above)
        SECONDS.check("retry_timeout", retry_timeout)
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
            ),
            is_enabled=enabled,
            meter_provider=meter_provider,
        )
        if enabled:
            import ragspan_nats.connection  # noqa: F401 - here, where nobody waits, rather than beside the first requests

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

    def _make_work(self, queue: RecordQueue, log: ThrottledLog) -> Publishing:
        return Publishing(
            access=self._access,
            stream=self._stream,
            queue=queue,
            log=log,
            name=self._processor_options.name,
            redact=self._redact,
            compress_above=self._compress_above,
            retry_timeout=self._retry_timeout,
        )


def sink_from_settings(settings: Settings) -> NatsSink:
    """A sink for the broker that the settings name, with the stream, its limits and the credentials of `RAGSPAN_NATS_*`.

    Raises:
        ConfigurationError: the address, a credential, the stream's name or a limit is wrong; the message holds no secret.
    """
    if settings.sink is None:
        raise ConfigurationError("RAGSPAN_SINK should be an address, such as 'nats://broker:4222'")
    return NatsSink(
        access=BrokerAccess.from_environment(settings.sink),
        stream=Stream.from_environment(),
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
