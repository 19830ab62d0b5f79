"""What OTLP exporters log of an endpoint that cannot be reached: its cause, in place of a line of their HTTP client for each try.

Only what is logged inside `hearing` is touched, in its own thread: exporters that the application has made log as ever.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from ragspan.addresses import cause_in
from ragspan.throttled_log import ThrottledLog

_EXPORTERS = "opentelemetry.exporter."
_GIVEN_UP = "due to timeout"  # says this of every batch that it gives up, whatever the cause was
_hears: ContextVar[Callable[[str], bool] | None] = ContextVar("ragspan_export_hears", default=None)
_log = ThrottledLog()


@contextlib.contextmanager
def hearing(on_cause: Callable[[str], None]) -> Iterator[None]:
    """Tell why an endpoint cannot be reached, when an exporter would first log it inside, and let it log nothing from then on."""
    is_told = False

    def hear(words: str) -> bool:
        nonlocal is_told
        cause = None if is_told else cause_in(words.replace(_GIVEN_UP, ""))
        if cause is not None:
            is_told = True
            on_cause(cause)
        return is_told

    for name in [name for name in logging.root.manager.loggerDict if name.startswith(_EXPORTERS)]:
        logger = logging.getLogger(name)
        if _is_not_heard not in logger.filters:
            logger.addFilter(_is_not_heard)
    token = _hears.set(hear)
    try:
        yield
    finally:
        _hears.reset(token)


def with_short_log(exporter: Any, what: str, address: str) -> Any:
    """The exporter, which logs one line a minute while its endpoint cannot be reached.

    Args:
        exporter: of spans, metrics or logs.
        what: it exports, for the line.
        address: of the endpoint, as it may be shown.
    """
    export = exporter.export

    def tell(cause: str) -> None:
        _log.report(
            f"{what} {address}",
            "%s cannot be sent to %s: %s; a batch is tried for OTEL_EXPORTER_OTLP_TIMEOUT, by default 10 s",
            what,
            address,
            cause,
        )

    def exported(*arguments: Any, **named: Any) -> Any:
        with hearing(tell):
            return export(*arguments, **named)

    exporter.export = exported
    return exporter


def _is_not_heard(record: logging.LogRecord) -> bool:
    """A filter of the exporters' loggers."""
    hear = _hears.get()
    return hear is None or record.levelno < logging.WARNING or not hear(record.getMessage())
