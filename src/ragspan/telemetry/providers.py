"""The OpenTelemetry providers that we write to: flushed, waited for at their end, and asked whether anybody reads them."""

from __future__ import annotations

import functools
import logging
import netrc  # noqa: F401 - else `requests` imports it at the first export, in a thread, and a fork may come at that moment
import sys
import time
import weakref
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from opentelemetry import trace
from opentelemetry.metrics import Meter, MeterProvider

from ragspan.process import in_use
from ragspan.telemetry import semconv
from ragspan.telemetry.emitter_protocols import Engine
from ragspan.telemetry.otel_context import suppressed
from ragspan.throttled_log import ThrottledLog, log_line

_FLUSH = 30.0  # seconds for one provider at most, the SDK's default
_OVER = "The TracerProvider was shut down: answers have no spans any more, and no judge is paid for them."
_TOO_EARLY = "the TracerProvider was shut down before the scores of all answers were there: shut ragspan down first, or call flush()"

_retrying: weakref.WeakSet[Any] = weakref.WeakSet()
"""The exporters that keep spans: their SDK does not flush an exporter, it only calls `export`."""
flush_as_well = _retrying.add
"""Flush this exporter after the providers, by its `force_flush`."""


def flush_spans(timeout: float) -> bool:
    """Have the spans exported that wait at any provider that somebody here writes to; True if all were in time.

    What an exporter cannot send now stays with it, and is not waited for.
    """
    with suppressed():
        return flush_all(in_use.provider_ends, timeout, until_refused=True)


def flush_all(providers: Iterable[Any], timeout: float, **how: bool) -> bool:
    """Flush the providers one after the other, then the exporters that keep spans, like `how`; True if all succeeded."""
    ends_at, is_done = time.monotonic() + timeout, True
    flushed: list[tuple[Any, dict[str, bool]]] = [
        (one, {}) for one in providers if callable(getattr(one, "force_flush", None))
    ]
    for one, options in [*flushed, *((exporter, how) for exporter in list(_retrying))]:
        seconds = min(max(0.0, ends_at - time.monotonic()), _FLUSH)
        try:
            is_done = one.force_flush(int(seconds * 1000), **options) is not False and is_done
        except Exception as error:  # noqa: BLE001 - a provider of the application's
            is_done = False
            log_line(logging.WARNING, "flushing %s failed: %s", type(one).__name__, type(error).__name__)
    return is_done


class ProviderEnd:
    """Waits for the end of one provider: a span processor of the SDK's that does nothing with spans.

    Many programs end with `provider.shutdown()` while answers wait for their scores, and a provider that is shut down drops the spans
    that end after it. So engines get their `exit_timeout` before, and from then on nothing is judged for this provider.
    """

    def __init__(self) -> None:
        self.is_over = False
        self.engines: weakref.WeakSet[Engine] = weakref.WeakSet()

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Let the span pass."""

    on_end = _on_ending = on_start

    def shutdown(self) -> None:
        """Let the engines finish, all in the same time."""
        if self.is_over:
            return
        began = time.monotonic()
        done = [engine.flush(max(0.0, engine.exit_timeout + began - time.monotonic())) for engine in list(self.engines)]
        self.is_over = True
        if not all(done):
            log_line(logging.WARNING, _TOO_EARLY)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 - the SDK's signature
        """True: nothing waits here."""
        return True


def exports_spans(provider: Any, engines: Iterable[Engine], log: ThrottledLog) -> bool:
    """Whether somebody gets the spans of this provider, which waits for these engines before it ends.

    Where that cannot be seen, it is taken to be so.
    """
    if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
        return False
    sdk, end = sys.modules.get("opentelemetry.sdk.trace"), None
    every = getattr(provider, "_active_span_processor", None)
    if sdk is not None and isinstance(provider, sdk.TracerProvider):
        end = in_use.provider_ends.get(provider)
        if end is None:
            end = in_use.provider_ends.setdefault(provider, ProviderEnd())
            # Before the exporting processors: the SDK shuts them down in their order, and has no other way to come first.
            if every is not None and isinstance(getattr(every, "_span_processors", None), tuple):
                with every._lock:  # noqa: SLF001
                    every._span_processors = (end, *every._span_processors)  # noqa: SLF001
            else:
                provider.add_span_processor(end)
        end.engines.update(engines)
        if end.is_over:
            log.report("provider_over", _OVER)
            return False
    processors = getattr(every, "_span_processors", None)
    return processors is None or any(one is not end for one in processors)


def is_read(provider: object) -> bool:
    """Whether this provider of metrics or of logs is an SDK's, is not switched off, and has somebody to send to."""
    if not callable(getattr(provider, "force_flush", None)) or getattr(provider, "_disabled", False):
        return False
    processors = getattr(provider, "_multi_log_record_processor", None)
    readers = getattr(provider, "_metric_readers", getattr(processors, "_log_record_processors", None))
    return readers is None or bool(readers)


@functools.cache
def scope() -> tuple[str, str, str]:
    """Name, version and schema of what we write, for the providers."""
    return semconv.SCOPE, version("ragspan"), semconv.SCHEMA_URL


def meter_of(provider: MeterProvider) -> Meter:
    return provider.get_meter(*scope())
