"""The sink: takes captures on the request path, and publishes them off it.

Guarantees:
- `submit` returns in microseconds, waits for nothing that does I/O, never raises, and may be called from any thread, from
  a finaliser and from a signal handler, also while it is being called.
- Every submitted capture ends in exactly one counted way: published, nothing to publish, or dropped with a reason. At every
  moment `submitted = queued + in flight + finished + dropped`. Published means that the stream has acknowledged it.
- What waits is bounded by number and by bytes, what is in flight by number. Nothing grows with the requests served.
- A broker that is away, slow or full costs records once the patience is over, or the queue is full, and nothing else.
- A record is in the stream once, however often it is submitted or published, within the stream's window for duplicates.
- `flush` and `shutdown` return when their timeout is over (and a grace of a tenth of a second), whatever hangs.
- The child of a fork has a fresh, empty sink, with a connection of its own. At the end of the process what waits is
  published within `exit_timeout`.

Until the first submit there is no thread and no connection. From then on the sink lives until `shutdown`, or as long as the
process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragspan.config import DropPolicy, is_enabled
from ragspan.engine._background import BackgroundProcessor, ProcessorOptions
from ragspan.engine._record_queue import RecordQueue
from ragspan.exceptions import ConfigurationError
from ragspan.redaction import RedactOption, redact_from
from ragspan.telemetry import semconv
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.access import BrokerAccess
from ragspan_nats.sink._publishing import Publishing
from ragspan_nats.sink.options import SinkOptions
from ragspan_nats.sink.stats import SinkStats
from ragspan_nats.streams import StreamLimits, StreamNames, stream_limits

if TYPE_CHECKING:  # what these load is needed where a sink is made, not where it is imported
    from opentelemetry.metrics import MeterProvider

_IN_FLIGHT = 64
"""Records that are published and not acknowledged. A broker that takes five milliseconds gets 12,000 a second so."""


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
        patience: seconds for which a record is tried that the broker does not take, 0 or more. More than the stream's
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
        patience: float = 600.0,
        exit_timeout: float = 10.0,
        redact: RedactOption = None,
        name: str = "ragspan",
        meter_provider: MeterProvider | None = None,
    ) -> None:
        is_enabled_ = is_enabled()
        self._options = SinkOptions(
            access=_access_to(url, access, reads_environment=is_enabled_),
            names=StreamNames(stream=stream),
            limits=_limits(limits, reads_environment=is_enabled_),
            queue_size=queue_size,
            queue_bytes=queue_bytes,
            drop=drop,
            compress_above=compress_above,
            patience=patience,
            exit_timeout=exit_timeout,
            redact=redact_from(redact) if is_enabled_ else None,
            name=name,
        )
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
            is_enabled=is_enabled_,
            meter_provider=meter_provider,
        )
        if is_enabled_:
            import ragspan_nats.client  # noqa: F401 - here, where nobody waits, rather than beside the first requests

    def stats(self) -> SinkStats:
        """Where everything is that was submitted. Takes no lock."""
        return SinkStats.of(self._counts())

    def _make_work(self, queue: RecordQueue, log: ThrottledLog) -> Publishing:
        return Publishing(self._options, account=queue, log=log)


def _limits(limits: StreamLimits | None, *, reads_environment: bool) -> StreamLimits:
    if limits is not None:
        return limits
    return stream_limits() if reads_environment else StreamLimits()


def _access_to(url: str | None, access: BrokerAccess | None, *, reads_environment: bool) -> BrokerAccess:
    if access is None:
        if url is None:
            raise ConfigurationError("no broker is named: give an address, such as nats://broker:4222, or access")
        return BrokerAccess.from_environment(url) if reads_environment else BrokerAccess(url=url)
    if url is not None and url != getattr(access, "url", url):
        raise ConfigurationError("url and access name two brokers: give one of them")
    return access
