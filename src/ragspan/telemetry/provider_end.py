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
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, cast

from opentelemetry import trace

from ragspan.process import in_use

if TYPE_CHECKING:  # loading telemetry loads no SDK
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

_logger = logging.getLogger("ragspan")


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
        """Let it pass."""

    def on_end(self, span: Any) -> None:
        """Let it pass."""

    _on_ending = on_end

    def shutdown(self) -> None:
        if self.is_over:
            return
        began = time.monotonic()
        done = [engine.flush(max(0.0, engine.exit_timeout + began - time.monotonic())) for engine in list(self.engines)]
        self.is_over = True
        if not all(done):
            _logger.warning(
                "the TracerProvider was shut down before the scores of all answers were there: shut ragspan down first, or "
                "call flush()"
            )

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 - the SDK's signature
        """True: nothing waits here."""
        return True


class _Ends:
    """Of all providers of the process that somebody writes to."""

    def __init__(self) -> None:
        self.of: weakref.WeakKeyDictionary[TracerProvider, ProviderEnd] = weakref.WeakKeyDictionary()


def _is_the_sdks(provider: object) -> TypeGuard[TracerProvider]:
    module = sys.modules.get("opentelemetry.sdk.trace")
    return module is not None and isinstance(provider, module.TracerProvider)


def end_of(provider: object) -> ProviderEnd | None:
    """The end of this provider, which is waited for from now on; None if it is not the SDK's."""
    if not _is_the_sdks(provider):
        return None
    ends = in_use.only(_Ends).of
    found = ends.get(provider)
    if found is None:
        found = ends.setdefault(provider, ProviderEnd())
        _put_first(found, provider)
    return found


def _put_first(end: ProviderEnd, provider: TracerProvider) -> None:
    """Before the exporting processors: the SDK shuts processors down in their order, and has no other way to come first."""
    every = getattr(provider, "_active_span_processor", None)
    lock = getattr(every, "_lock", None)
    if every is None or lock is None or not isinstance(getattr(every, "_span_processors", None), tuple):
        provider.add_span_processor(cast("SpanProcessor", end))
        return
    with lock:
        every._span_processors = (end, *every._span_processors)  # noqa: SLF001


def exports_spans(provider: object) -> bool:
    """Whether somebody gets the spans of this provider. Where that cannot be told, it is taken to be so."""
    if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
        return False
    end = end_of(provider)
    if end is not None and end.is_over:
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
