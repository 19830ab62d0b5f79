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

from types import TracebackType
from typing import TYPE_CHECKING

from ragspan.config import DropPolicy, is_enabled
from ragspan.engine._admission import Admission
from ragspan.engine._deadline import Deadline
from ragspan.engine._lifecycle import keep_inherited, watch_exit, watch_forks
from ragspan.engine._shutdown import Shutdown
from ragspan.engine.stats import EngineStats, ShutdownReport
from ragspan.exceptions import ConfigurationError
from ragspan.redaction import RedactOption, redact_from
from ragspan.telemetry import semconv
from ragspan_nats.access import BrokerAccess
from ragspan_nats.sink.options import SinkOptions
from ragspan_nats.sink.stats import SinkStats
from ragspan_nats.streams import StreamLimits, StreamNames, stream_limits

if TYPE_CHECKING:  # what these load is needed where a sink is made, not where it is imported
    from opentelemetry.metrics import MeterProvider

    from ragspan_nats.sink._parts import Parts


class NatsSink(Admission):
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
        self._is_enabled = is_enabled()
        self._options = SinkOptions(
            access=_access_to(url, access, reads_environment=self._is_enabled),
            names=StreamNames(stream=stream),
            limits=_limits(limits, reads_environment=self._is_enabled),
            queue_size=queue_size,
            queue_bytes=queue_bytes,
            drop=drop,
            compress_above=compress_above,
            patience=patience,
            exit_timeout=exit_timeout,
            redact=redact_from(redact) if self._is_enabled else None,
            name=name,
        )
        self._assemble()
        watch_forks(self, NatsSink._start_afresh)
        if self._is_enabled:
            import ragspan_nats.client  # noqa: F401 - here, where nobody waits, rather than beside the first requests
            from ragspan.telemetry.self_metrics import SelfMetrics

            self._self_metrics = SelfMetrics(meter_provider)
            self._self_metrics.watch(
                self._counts,
                self._bytes_waiting,
                name,
                max_records=queue_size,
                max_bytes=queue_bytes,
                finished_as=semconv.RESULT_PUBLISHED,
            )

    @property
    def exit_timeout(self) -> float:
        """Seconds that the end of the process may wait for records to be published."""
        return self._options.exit_timeout

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until everything that was submitted before is with the stream, or dropped.

        Args:
            timeout: seconds; 0 asks without waiting.

        Returns:
            False if something may be left; also in the sink's own thread, where waiting would be waiting for oneself.
        """
        parts = self._parts
        if self._shutdown.is_done or not self._is_enabled:
            return True
        if parts.worker.is_current_thread:
            return False
        return parts.backlog.wait_until_out(Deadline(timeout))

    def shutdown(self, timeout: float = 10.0) -> ShutdownReport:
        """Take nothing any more, publish what is left within `timeout` seconds, and let go of everything.

        What is not published by then is abandoned and counted as dropped. A second call returns the same report.
        """
        if not self._is_enabled:
            return ShutdownReport(finished=0, abandoned=0, seconds=0.0)
        return self._shutdown.run(timeout)

    def stats(self) -> SinkStats:
        """Where everything is that was submitted. Takes no lock."""
        return SinkStats.of(self._counts())

    def __enter__(self) -> NatsSink:  # noqa: PYI034 - Python 3.10 has no Self
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.shutdown()

    def _assemble(self) -> None:
        from ragspan_nats.sink._parts import assemble

        self._parts: Parts = assemble(self._options, on_start=lambda: watch_exit(self))
        self._shutdown = Shutdown(self._parts)
        if not self._is_enabled:
            self._parts.backlog.close("not_running")

    def _start_afresh(self) -> None:
        """In the child of a fork: locks may be held by threads that are not there, and the work is the parent's."""
        keep_inherited(self._parts)
        was_shut_down = self._parts.backlog.is_closed
        self._assemble()
        if was_shut_down:
            self._parts.backlog.close("shutdown")

    def _counts(self) -> EngineStats:
        return self._parts.backlog.stats()

    def _bytes_waiting(self) -> int:
        return self._parts.backlog.bytes


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
