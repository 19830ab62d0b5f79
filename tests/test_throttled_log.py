from __future__ import annotations

from ragspan.throttled_log import ThrottledLog


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
