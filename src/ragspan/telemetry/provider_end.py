"""Whether a provider of the application's still takes what we write, and what happens when it is shut down.

Many programs end with `provider.shutdown()`. Answers may wait for their scores then, and a provider that is shut down drops the
spans that end after it.

Guarantees:
- Before a provider's own processors shut down, engines that write there get their `exit_timeout` to finish, all at the same time.
  What they cannot finish is said in one line.
- From then on nothing is judged for this provider.
- Spans of the application pass: nothing is done with them.
"""

from __future__ import annotations

import logging
import sys
import time
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, cast

from opentelemetry import trace

from ragspan.process import in_use
from ragspan.throttled_log import ThrottledLog, log_line

if TYPE_CHECKING:  # loading telemetry loads no SDK
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

_OVER = "The TracerProvider was shut down: answers have no spans any more, and no judge is paid for them."


class Engine(Protocol):
    """What writes to a provider, and may have work to finish."""

    @property
    def exit_timeout(self) -> float: ...

    def flush(self, timeout: float) -> bool: ...


class ProviderEnd:
    """Waits for the end of one provider: a span processor of the SDK's that does nothing with spans."""

    def __init__(self) -> None:
        self.is_over = False
        self.engines: weakref.WeakSet[Any] = weakref.WeakSet()

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Let the span pass."""

    on_end = _on_ending = on_start

    def shutdown(self) -> None:
        if self.is_over:
            return
        began = time.monotonic()
        done = [engine.flush(max(0.0, engine.exit_timeout + began - time.monotonic())) for engine in list(self.engines)]
        self.is_over = True
        if not all(done):
            log_line(
                logging.WARNING,
                "the TracerProvider was shut down before the scores of all answers were there: shut ragspan down first, or "
                "call flush()",
            )

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 - the SDK's signature
        """True: nothing waits here."""
        return True


def _put_first(end: ProviderEnd, provider: TracerProvider) -> None:
    """Before the exporting processors: the SDK shuts processors down in their order, and has no other way to come first."""
    every = getattr(provider, "_active_span_processor", None)
    lock = getattr(every, "_lock", None)
    if every is None or lock is None or not isinstance(getattr(every, "_span_processors", None), tuple):
        provider.add_span_processor(cast("SpanProcessor", end))
        return
    with lock:
        every._span_processors = (end, *every._span_processors)  # noqa: SLF001


def exports_spans(provider: object, engines: Iterable[Engine], log: ThrottledLog) -> bool:
    """Whether somebody gets the spans of this provider, which waits for these engines before it ends.

    Where that cannot be seen, it is taken to be so.
    """
    if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
        return False
    sdk = sys.modules.get("opentelemetry.sdk.trace")
    end: ProviderEnd | None = None
    if sdk is not None and isinstance(provider, sdk.TracerProvider):
        end = in_use.provider_ends.get(provider)
        if end is None:
            end = in_use.provider_ends.setdefault(provider, ProviderEnd())
            _put_first(end, cast("TracerProvider", provider))
        end.engines.update(engines)
        if end.is_over:
            log.report("provider_over", _OVER)
            return False
    processors = getattr(getattr(provider, "_active_span_processor", None), "_span_processors", None)
    return processors is None or any(one is not end for one in processors)


def is_read(provider: object) -> bool:
    """Whether this provider of metrics or of logs is an SDK's, is not switched off or shut down, and has somebody to send to."""
    if not callable(getattr(provider, "force_flush", None)) or getattr(provider, "_disabled", False):
        return False
    processors = getattr(provider, "_multi_log_record_processor", None)
    readers = getattr(provider, "_metric_readers", getattr(processors, "_log_record_processors", None))
    return not _is_over(provider) and (readers is None or any(not _is_over(one) for one in readers))


def _is_over(one: object) -> bool:
    """Whether this part of the SDK was shut down, as far as one sees: a provider of logs itself does not know it."""
    return any(getattr(part, "_shutdown", None) is True for part in (one, getattr(one, "_batch_processor", None)))
