from __future__ import annotations

import logging

import pytest

from ragspan import config
from ragspan.children import configure_child
from ragspan.config import Settings
from ragspan.exceptions import ConfigurationError
from ragspan.process import set_up_or_off
from ragspan.throttled_log import ThrottledLog, log_line


def test_one_line_a_minute_and_then_how_many_there_were(caplog, clock):
    log = ThrottledLog(clock=clock)
    for seconds in (0, 1, 58, 1, 1, 59):
        clock.advance(seconds)
        log.report("emitter", "%s failed", "OTelEmitter")

    assert caplog.messages == [
        "OTelEmitter failed",
        "OTelEmitter failed (and 2 more since the last such line)",
        "OTelEmitter failed (and 1 more since the last such line)",
    ]


def test_each_kind_has_its_own_minute(caplog, clock):
    log = ThrottledLog(clock=clock)
    log.report("one", "first")
    log.report("other", "second")

    assert [(record.name, record.levelname, record.message) for record in caplog.records] == [
        ("ragspan", "WARNING", "first"),
        ("ragspan", "WARNING", "second"),
    ]


LOGS = {
    "a throttled line": lambda clock: ThrottledLog(clock=clock).report("kind", "line"),
    "a line": lambda _: log_line(logging.ERROR, "line"),
    "a setting that nobody reads": lambda _: Settings.from_environment({"RAGSPAN_METRIK": "x"}),
    "a set-up that fails": lambda _: fails(),
    "a child that cannot be set up": lambda _: configure_child(),
}


def fails():
    with set_up_or_off():
        raise ConfigurationError("a setting that is wrong")


@pytest.mark.parametrize("logs", LOGS)
def test_a_handler_that_raises_stops_nobody(clock, monkeypatch, logs):
    monkeypatch.setenv("RAGSPAN_ENABLED", "perhaps")
    monkeypatch.setenv("PYTHONPATH", "")  # to which a child's set-up adds
    monkeypatch.setattr(config, "_warned", set())
    lines = []

    class Raising(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())
            raise OSError

    handler = Raising()
    logger = logging.getLogger("ragspan")
    logger.addHandler(handler)
    try:
        LOGS[logs](clock)
    finally:
        logger.removeHandler(handler)

    assert len(lines) == 1
