"""Listens to what ragspan and OpenTelemetry log, which is how exporters tell why they failed."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

_LOGGERS = ("ragspan", "opentelemetry")
_KEPT = 20


class _Collecting(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):  # a message that does not fit its arguments
            self.lines.append(record.getMessage())
            del self.lines[:-_KEPT]


@contextlib.contextmanager
def overheard() -> Iterator[list[str]]:
    """Collect the warnings that are logged inside, the newest last, in place of the log's own handlers.

    For one check at a time: what is logged belongs to the process.
    """
    collecting = _Collecting()
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.addHandler(collecting)
        logger.propagate = False
    try:
        yield collecting.lines
    finally:
        for logger, propagate in zip(loggers, before, strict=True):
            logger.removeHandler(collecting)
            logger.propagate = propagate
