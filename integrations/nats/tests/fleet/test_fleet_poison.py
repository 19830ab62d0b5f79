"""Messages that hold no record, or a strange one: each is put aside or scored, and none holds up the good ones."""

from __future__ import annotations

import pytest
from fleet_poison import no_records, raw_frames, send_raw

pytestmark = pytest.mark.slow


def test_what_is_no_record_is_put_aside_and_holds_nothing_up(fleet):
    poison = no_records()
    worker = fleet.worker("--concurrency", 4)
    records = []
    for payload, headers in poison.values():
        fleet.put(payload, headers)
        records += fleet.publish()
    ends = fleet.all_scored(records)
    assert ends.others == ["invalid_record"] * len(poison)
    assert worker.is_running
    letters = fleet.letters()
    assert sorted(letter.payload for letter in letters) == sorted(payload for payload, _ in poison.values())
    assert all("garbage" not in letter.headers["Ragspan-Detail"] for letter in letters)


def test_headers_that_are_none_hold_nothing_up(fleet):
    poison = raw_frames()
    worker = fleet.worker("--concurrency", 4)
    records = fleet.publish(5)
    send_raw(fleet.broker, poison.values())
    records += fleet.publish(5)
    ends = fleet.all_scored(records)
    assert ends.others == ["invalid_record"] * len(poison)
    assert worker.figures()["nacked"] == {}
