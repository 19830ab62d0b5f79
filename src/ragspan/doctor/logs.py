"""What ragspan and OpenTelemetry log while something is tried."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

_KEPT_LINES = 20


class _Collecting(logging.Handler):
    """Keeps the newest lines."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):  # a message that does not fit its arguments
            self.lines.append(record.getMessage())
            del self.lines[:-_KEPT_LINES]


@contextlib.contextmanager
def captured_logs() -> Iterator[list[str]]:
    """The warnings that ragspan and OpenTelemetry log inside, the newest last; the log's own handlers do not get them."""
    collecting = _Collecting()
    before = {logger: logger.propagate for logger in map(logging.getLogger, ("ragspan", "opentelemetry"))}
    for logger in before:
        logger.addHandler(collecting)
        logger.propagate = False
    try:
        yield collecting.lines
    finally:
        for logger, propagate in before.items():
            logger.removeHandler(collecting)
            logger.propagate = propagate
